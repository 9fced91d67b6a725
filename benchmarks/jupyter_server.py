"""A Jupyter server of this environment, for pages that are opened in a browser without a person."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 60.0
_OPEN = ("--IdentityProvider.token=", "--ServerApp.password=", "--allow-root", "--no-browser")


@contextmanager
def jupyter_server(
    application: str, folder: Path, environment: Mapping[str, str], log: Path, *, options: Sequence[str] = ()
) -> Iterator[str]:
    """Start ``jupyter APPLICATION`` in ``folder`` on a free port, and end it; yields its address once it answers.

    What it prints goes to ``log``. Raises `TimeoutError` with the last of that if it does not answer.
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
