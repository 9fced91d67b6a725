"""Finds out what a sandbox is worth here, by attacking the host from inside it."""

from __future__ import annotations

import json
import os
import secrets
import socket
import stat
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from autograder.host.sandbox.errors import SandboxError
from autograder.host.sandbox.inside.attacks import ATTACKS
from autograder.host.sandbox.limits import MIB, Ending, Limits
from autograder.host.sandbox.sandbox import INSIDE, Sandbox, environment
from autograder.host.sandbox.view import PACKAGE, course_lib

LIMITS = Limits(wall_s=20.0, memory_bytes=160 * MIB, processes=24, tmp_bytes=4 * MIB)


@dataclass(frozen=True)
class Finding:
    """What one attack came to."""

    attack: str
    contained: bool
    gained: str
    """What the attack got hold of; empty if it was contained."""

    @property
    def aim(self) -> str:
        """What the attack tried to do, as the end of a sentence."""
        return ATTACKS[self.attack].__doc__ or self.attack


def probe(sandbox: Sandbox) -> tuple[Finding, ...]:
    """Run all attacks in one worker; raises SandboxError if not even that can be started."""
    with (
        tempfile.NamedTemporaryFile("w", prefix="autograder-probe-") as secret,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        secret.write(secrets.token_hex())
        secret.flush()
        target = _target(secret.name, server.getsockname()[1])
        with sandbox._start((INSIDE / "attacks.py").read_text(), LIMITS) as worker:
            gained, ending = _converse(worker.socket, target), worker.end()
    if len(gained) < len(ATTACKS) - 1:
        raise SandboxError(_why_not_started(ending))
    if ending.reason == "out_of_memory":
        gained["use_memory"] = ""
    return tuple(_finding(name, gained.get(name, "unclear")) for name in ATTACKS)


def _finding(name: str, gained: str) -> Finding:
    return Finding(name, not gained, shorten(gained, 80))


def _target(secret_file: str, port: int) -> dict[str, Any]:
    return {
        "secret_file": secret_file,
        "grader": str(PACKAGE / "host"),
        "port": port,
        "pid": os.getpid(),
        "pid_started": Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19],
        "variables": sorted(set(os.environ) - set(environment("/tmp")) - {"PWD"}),
        "directories": [str(PACKAGE.parent), str(course_lib()), sys.prefix, tempfile.gettempdir() + "/.."],
        "processes": LIMITS.processes,
        "tmp_bytes": LIMITS.tmp_bytes,
        "memory_bytes": LIMITS.memory_bytes,
    }


def _converse(channel: socket.socket, target: Mapping[str, Any]) -> dict[str, str]:
    """Send the target and return what comes back until the worker ends."""
    gained: dict[str, str] = {}
    channel.settimeout(LIMITS.wall_s)
    with suppress(OSError), channel.makefile("rw") as lines:
        lines.write(json.dumps(target) + "\n")
        lines.flush()
        for line in lines:
            name, what = json.loads(line)
            gained[name] = what
    return gained


def _why_not_started(ending: Ending) -> str:
    for place in (Path(sys.executable).resolve(), Path(sys.prefix, "lib"), course_lib(), PACKAGE / "worker"):
        if os.geteuid() == 0 and place.exists() and not place.stat().st_mode & stat.S_IROTH:
            return (
                f"A worker runs as another user, who may not read {place}; make it readable with"
                f" `chmod -R go+rX {place}`."
            )
    printed = ending.output.strip().splitlines()[-1:] or [ending.detail or f"it ended with {ending.exit_code}"]
    return f"The interpreter {sys.executable} does not run in the sandbox: {printed[0]}."
