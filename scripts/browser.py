"""Control a headless Chromium through its debugging protocol: open a page, and wait until it is loaded."""

import asyncio
import json
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from tornado.websocket import WebSocketClientConnection, websocket_connect

POLL_S = 0.01
PATIENCE_S = 60.0
NAMES = ("chromium", "chromium-browser", "google-chrome")


class NoBrowserError(Exception):
    """There is no Chromium on this machine."""


def find() -> str:
    """Return the path of Chromium; raises `NoBrowserError` if there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        raise NoBrowserError("There is no Chromium here; `apt-get install chromium` on Debian.")
    return program


class Browser:
    """One tab."""

    def __init__(self, connection: WebSocketClientConnection) -> None:
        self._connection, self._last = connection, 0
        self.events: list[dict[str, Any]] = []  # events of the enabled domains, oldest first

    async def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send one command and return its result; append events that arrive meanwhile to `events`."""
        self._last += 1
        await self._connection.write_message(json.dumps({"id": self._last, "method": method, "params": parameters}))
        while True:
            message = await self._connection.read_message()
            if message is None:
                raise NoBrowserError("Chromium ended.")
            answer: dict[str, Any] = json.loads(message)
            if answer.get("id") == self._last:
                return dict(answer.get("result", {}))
            self.events.append(answer)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression, or None if it raised."""
        answer = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return answer.get("result", {}).get("value")

    async def open(self, address: str, is_there: str) -> float:
        """Open `address` and return the seconds until the expression `is_there` holds in the loaded page."""
        await self.ask("Page.navigate", url="about:blank")
        started = time.monotonic()
        await self.ask("Page.navigate", url=address)
        whole = f"location.href != 'about:blank' && document.readyState == 'complete' && ({is_there})"
        while not await self.evaluate(whole):
            if time.monotonic() - started > PATIENCE_S:
                raise TimeoutError(f"{address} was not there after {PATIENCE_S:.0f} s")
            await asyncio.sleep(POLL_S)
        return time.monotonic() - started


@asynccontextmanager
async def browser(profile: Path) -> AsyncIterator[Browser]:
    """Start Chromium with an empty `profile`; raises `NoBrowserError` if there is no Chromium."""
    program = find()
    # without its sandbox, which does not work as root; it opens only our own pages
    command = [program, "--headless=new", "--no-sandbox", "--remote-debugging-port=0", f"--user-data-dir={profile}"]
    process = subprocess.Popen([*command, "about:blank"], stderr=subprocess.DEVNULL)
    try:
        port = await _port(profile / "DevToolsActivePort")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as listed:
            address = next(tab["webSocketDebuggerUrl"] for tab in json.load(listed) if tab["type"] == "page")
        yield Browser(await websocket_connect(address, max_message_size=1 << 30))
    finally:
        process.terminate()
        process.wait()


async def _port(written: Path) -> str:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        if written.is_file() and (lines := written.read_text().split()):
            return lines[0]
        await asyncio.sleep(0.1)
    raise NoBrowserError("Chromium did not start.")


PATIENCE_S = 60.0
_OPEN = ("--IdentityProvider.token=", "--ServerApp.password=", "--allow-root", "--no-browser")


@contextmanager
def jupyter_server(
    application: str, folder: Path, environment: Mapping[str, str], log: Path, *, options: Sequence[str] = ()
) -> Iterator[str]:
    """Start `jupyter APPLICATION` in `folder` on a free port, yield its address once it answers, and stop it.

    Its output goes to `log`. Raises `TimeoutError` with the end of the output if it does not answer.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "jupyter", application, f"--port={port}", *_OPEN, *options]
    with log.open("w") as said:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=said
        )
    try:
        _wait(f"http://127.0.0.1:{port}/api", log)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _wait(address: str, log: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            urllib.request.urlopen(address).close()
            return
        except OSError:
            time.sleep(0.25)
    raise TimeoutError(f"{address} does not answer; the server's last words: {log.read_text()[-1000:]}")
