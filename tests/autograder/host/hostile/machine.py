"""Run attacks on the machine: unprotected, with guards so that nothing is hurt, and in the worker of a level.

A file of the folder `machine` is an answer like any other, whose question says what there is to gain; it returns what
it gained, or nothing.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from autograder.host.sandbox import Limits, Sandbox, WorkerProcess
from autograder.host.session import AnswerFailedError, Session
from autograder.protocol.requests.answers import Ask
from autograder.protocol.requests.loads import LoadAnswer, Part
from tests.autograder.host.hostile.catalogue import ROOT, Attack
from tests.drawn import chance

MIB = 1 << 20
LIMITS = Limits(memory_bytes=640 * MIB, processes=96, tmp_bytes=16 * MIB, file_bytes=64 * MIB)
WALL_S = 4.0
UNLIMITED = {"memory_bytes": 128 * MIB, "file_bytes": 8 * MIB, "wall_s": 1.0}
"""Asked where nothing is limited: to take twice of little, or to stay a little longer, shows it as well."""
TOKEN = chance("token of the host").randbytes(32).hex()
# These end the worker, or leave it unfit for another question.
FATAL = {
    "daemon",
    "endless_output",
    "fork_bomb",
    "ignores_signals",
    "kills_the_parent",
    "memory_in_many_processes",
    "memory_in_one_process",
    "memory_in_shared_pages",
    "memory_without_a_name",
    "threads",
}
TWICE = {"leaves_traces", "poisons_caches"}  # of which the second run finds what the first one left
LASTING_S = 1.3  # after which a daemon that lives has written its marker

# The parent is a process of its own, so that an attack on the parent hits nobody else.
SACRIFICE = """
import resource, subprocess, sys
secret = sys.argv[1]
resource.setrlimit(resource.RLIMIT_DATA, (3 << 30, 3 << 30))
subprocess.run([sys.executable, "-c", sys.stdin.read(), *sys.argv[2:]], close_fds=False)
"""
PROGRAM = """
import json, sys
gained = read_graph(json.loads(sys.argv[1]))
open(sys.argv[2], "w").write(gained)
"""


@contextlib.contextmanager
def target(folder: Path) -> Iterator[dict[str, Any]]:
    """Something to steal or to reach, of each kind; for the time of the attack."""
    gradebook = folder / "gradebook.db"
    gradebook.write_text("everyone: 3")
    gradebook.chmod(0o600)
    abstract = f"autograder-test-{os.getpid()}"
    os.environ["TOKEN_OF_THE_HOST"] = TOKEN
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as hidden,
        socket.socket(socket.AF_UNIX) as visible,
    ):
        for server, address in ((hidden, "\0" + abstract), (visible, str(folder / "socket"))):
            server.bind(address)
            server.listen()
        yield {
            "memory_bytes": LIMITS.memory_bytes,
            "processes": LIMITS.processes,
            "tmp_bytes": LIMITS.tmp_bytes,
            "file_bytes": LIMITS.file_bytes,
            "output_bytes": 80 * MIB,
            "wall_s": WALL_S,
            "token": [TOKEN[:10], TOKEN[10:]],  # in parts, so that no command line of ours shows it
            "port": tcp.getsockname()[1],
            "abstract": abstract,
            "socket_file": str(folder / "socket"),
            "root": str(ROOT),
            "gradebook": str(gradebook),
            "folder": str(folder),
            "marker": str(folder / "marker"),
            "residue": f"{time.monotonic_ns():x}",  # that no other run has; the folder /tmp is for all,
        }
    (folder / "socket").unlink()
    del os.environ["TOKEN_OF_THE_HOST"]


def unprotected(attack: Attack, question: dict[str, Any], folder: Path) -> str:
    """What the attack gains where nothing keeps it out but a limit on memory."""
    result = folder / "gained"
    inherited = os.open(_written(folder / "inherited", TOKEN), os.O_RDONLY)
    os.set_inheritable(inherited, True)
    arguments = [TOKEN, json.dumps(question | UNLIMITED), str(result)]
    for _ in range(2 if attack.path.stem in TWICE else 1):
        process = subprocess.Popen(
            [sys.executable, "-c", SACRIFICE, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            start_new_session=True,
            text=True,
        )
        process.communicate(attack.path.read_text() + PROGRAM, timeout=30)
    os.close(inherited)
    deadline = time.monotonic() + 2  # whose parent was killed is still writing
    while not result.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    return result.read_text() + _marker(attack, question)


def gained(attacks: Sequence[Attack], sandbox: Sandbox, question: dict[str, Any]) -> dict[str, str]:
    """What each attack gains in a worker of `sandbox`; those that do no harm to their worker share one."""
    found = {}
    shared = _session(sandbox, 60.0)
    for attack in attacks:
        session = _session(sandbox, WALL_S) if attack.path.stem in FATAL else shared
        found[attack.path.stem] = _asked(session, attack, question)
        if attack.path.stem in TWICE:
            with contextlib.suppress(AnswerFailedError):
                shared.close()  # the next worker is to find what this one left
            shared = session = _session(sandbox, 60.0)
            found[attack.path.stem] = _asked(session, attack, question)
        if session is not shared:
            with contextlib.suppress(AnswerFailedError):
                session.close()
        found[attack.path.stem] += _marker(attack, question)
    with contextlib.suppress(AnswerFailedError):
        shared.close()
    return found


class _Tight:
    """A sandbox whose workers get small limits, so that little is enough to exceed them."""

    def __init__(self, inner: Sandbox) -> None:
        self.inner = inner

    def start(self, *, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        return self.inner.start(limits=replace(LIMITS, wall_s=limits.wall_s), masked=masked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def _session(sandbox: Sandbox, wall_s: float) -> Session:
    return Session(_Tight(sandbox), None, wall_s=wall_s)  # type: ignore[arg-type]


def _asked(session: Session, attack: Attack, question: dict[str, Any]) -> str:
    load = LoadAnswer("value", "read_graph", (Part("answer", attack.path.read_text()),))
    try:
        session.reload(load, [])
        reply, _ = session.call(Ask(question))
    except AnswerFailedError:
        return ""
    return str(reply.body.value)


def _marker(attack: Attack, question: dict[str, Any]) -> str:
    if attack.path.stem != "daemon":
        return ""
    time.sleep(LASTING_S)
    return "outlived the run" if Path(question["marker"]).exists() else ""


def _written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path
