"""Probe a sandbox on this machine: attack the host from inside and report the attacks that succeed."""

import json
import os
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.inside.attacks import ATTACKS
from autograder.host.sandbox.interpreter import INSIDE, environment, zygote_environment
from autograder.host.sandbox.levels import Level, SandboxError
from autograder.host.sandbox.process import WorkerProcess
from autograder.host.sandbox.resource_limits import MIB, Ending, Limits
from autograder.host.sandbox.sandbox import Sandbox
from autograder.host.sandbox.view import PACKAGE, course_lib
from autograder.host.sandbox.zygote import ZygotePool

LIMITS = Limits(wall_s=20.0, memory_bytes=160 * MIB, processes=24, tmp_bytes=4 * MIB)


@dataclass(frozen=True)
class Finding:
    """The result of one attack."""

    attack: str
    contained: bool
    gained: str
    """What the attack obtained; empty if it was contained."""

    @property
    def aim(self) -> str:
        """Return the aim of the attack as the end of a sentence."""
        return ATTACKS[self.attack].__doc__ or self.attack


def probe(sandbox: Sandbox, *, forked: bool = False) -> tuple[Finding, ...]:
    """Run all attacks in one worker; raise `SandboxError` if no worker can be started.

    With `forked`, the worker is the child of a zygote that has imported nothing: only its isolation is tested.
    """
    gained: dict[str, str] = {}
    with _targets(sandbox._device) as target, _workers(sandbox, forked) as start:
        while attacks := [name for name in ATTACKS if name not in gained]:
            with start((INSIDE / "attacks.py").read_text(encoding="utf-8"), LIMITS) as worker:
                told, ending = _exchange(worker.socket, {**target, "attacks": attacks}), worker.end()
            gained |= told
            last_words = [name for name in attacks if name not in told][:1]
            if not last_words:
                break
            if not gained or ending.exit_code is not None:
                raise SandboxError(_why_not_started(sandbox, ending))
            gained[last_words[0]] = ""  # the worker was killed at a limit
    return tuple(_finding(name, gained.get(name, "unclear")) for name in ATTACKS)


@contextmanager
def _workers(sandbox: Sandbox, forked: bool) -> Iterator[Callable[[str, Limits], WorkerProcess]]:
    if not forked:
        yield sandbox._start
        return
    zygotes = ZygotePool(lambda: sandbox._zygote(preload=False))
    try:
        yield lambda program, limits: sandbox._fork(zygotes, program, limits)
    finally:
        zygotes.close()


def _finding(name: str, gained: str) -> Finding:
    return Finding(name, not gained, shorten(gained, 80))


@contextmanager
def _targets(device: Device = CPU) -> Iterator[Mapping[str, Any]]:
    """Yield the targets of the attacks: a secret file, servers, and this process."""
    with (
        tempfile.TemporaryDirectory(prefix="autograder-probe-") as directory,
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as named,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
    ):
        # Readable for all users, so that only the sandbox can refuse access.
        Path(directory).chmod(0o755)
        secret = Path(directory, "secret")
        secret.write_text(secrets.token_hex())
        name = f"\0autograder-probe-{secrets.token_hex(4)}"
        for server, address in ((named, f"{directory}/named"), (abstract, name), (datagrams, f"{directory}/datagrams")):
            server.bind(address)
        for server in (named, abstract):
            server.listen()
        for place in ("named", "datagrams"):
            Path(directory, place).chmod(0o777)
        yield {**_target(str(secret), tcp.getsockname()[1], directory, device), "abstract": name}


def _target(secret_file: str, port: int, directory: str, device: Device) -> Mapping[str, Any]:
    return {
        "attacks": list(ATTACKS),
        "secret_file": secret_file,
        "grader": str(PACKAGE / "host"),
        "port": port,
        "socket_file": f"{directory}/named",
        "datagrams": f"{directory}/datagrams",
        "pid": os.getpid(),
        "pid_started": Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19],
        "variables": sorted(
            set(os.environ) - {*environment("/tmp", device), *zygote_environment("/tmp", device), "PWD"}
        ),
        "directories": [str(PACKAGE.parent), str(course_lib()), sys.prefix, tempfile.gettempdir() + "/..", directory],
        "processes": LIMITS.processes,
        "tmp_bytes": LIMITS.tmp_bytes,
        "memory_bytes": LIMITS.memory_bytes,
    }


def _exchange(channel: socket.socket, target: Mapping[str, Any]) -> dict[str, str]:
    """Send the target and return the results that arrive until the worker ends."""
    gained: dict[str, str] = {}
    channel.settimeout(LIMITS.wall_s)
    with suppress(OSError), channel.makefile("rw") as lines:
        lines.write(json.dumps(target) + "\n")
        lines.flush()
        for line in lines:
            name, what = json.loads(line)
            gained[name] = what
    return gained


def _why_not_started(sandbox: Sandbox, ending: Ending) -> str:
    interpreter = Path(sys.executable).resolve()
    for place in (interpreter, Path(sys.prefix, "lib"), course_lib(), PACKAGE / "worker") if os.geteuid() == 0 else ():
        if place.exists() and not place.stat().st_mode & stat.S_IROTH:
            return (
                f"A worker runs as another user, who may not read {place}; make it readable with"
                f" `chmod -R go+rX {place}`."
            )
        # Without mounts, every parent folder has to be open as well.
        for parent in place.parents if sandbox.level == Level.CONFINED else ():
            if not parent.stat().st_mode & stat.S_IXOTH:
                return _closed(place, parent, is_interpreter=place == interpreter)
    printed = ending.output.strip().splitlines()[-1:] or [ending.detail or f"it ended with {ending.exit_code}"]
    return f"The interpreter {sys.executable} does not run in the sandbox: {printed[0]}."


def _closed(place: Path, parent: Path, *, is_interpreter: bool) -> str:
    """Return a sentence that says what another user cannot read, and how to change that."""
    if is_interpreter:
        return (
            f"The interpreter {place} cannot be read by other users, who workers are here, because they may not enter"
            f" {parent}; make the environment with one that every user may read, such as `/usr/bin/python3 -m venv`."
        )
    return (
        f"The folder {place} cannot be read by other users, who workers are here, because they may not enter {parent};"
        " move the project to a place that every user may enter, such as /opt."
    )
