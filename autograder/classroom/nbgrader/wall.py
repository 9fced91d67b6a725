"""Run nbgrader's steps in a process beside this one, one hand-in at a time, with limits on time, memory and files.

nbgrader, nbconvert and their parsers read what students wrote. One notebook can keep them busy for hours, or make them
ask for all memory. Here such a step ends alone: `Wall.do` raises `NbgraderError` with one sentence, and the next
hand-in gets a new process. Between hand-ins the process is kept, because it has compiled templates and statements.
"""

import contextlib
import json
import math
import multiprocessing
import os
import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Self

from autograder.classroom.nbgrader.course import NbgraderError

_FORK = multiprocessing.get_context("fork")  # a new interpreter would import nbgrader for seconds


@dataclass(frozen=True)
class StepLimits:
    """What one step may take for one hand-in; an ordinary step takes a second and some megabytes."""

    cpu_s: int = 60
    wall_s: float = 900.0
    memory_bytes: int = 2 << 30
    file_bytes: int = 1 << 30  # of each file; the gradebook is one of them


class Wall:
    """Run `do(step, assignment, student)` in a process that is ended and replaced if a step fails.

    >>> with Wall(course.do) as wall:
    ...     wall.do("autograde", "04_fx_capture", "ada")
    """

    def __init__(self, do: Callable[..., object], limits: StepLimits | None = None) -> None:
        self._do = do
        self._limits = limits or StepLimits()
        self._process: multiprocessing.process.BaseProcess | None = None
        self._ours: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def do(self, step: str, *arguments: str) -> None:
        """Run one step; raises `NbgraderError` with the sentence of its error, or with the limit that ended it."""
        asked = json.dumps([step, *arguments]).encode()
        said = self._ask(asked, f"nbgrader {step} {' '.join(arguments)}")
        if said:
            self.close()  # a step that failed may have left anything behind in its process
            raise NbgraderError(said)

    def close(self) -> None:
        """End the process, if there is one; the next step starts another."""
        if self._process is not None and self._ours is not None:
            self._process.kill()
            self._process.join()
            self._ours.close()
        self._process = self._ours = None

    def _ask(self, asked: bytes, what: str) -> str:
        connection = self._ours or self._start()
        try:
            connection.send_bytes(asked)
            if not connection.poll(self._limits.wall_s):
                return f"{what} did not end within {self._limits.wall_s:g} s."
            return connection.recv_bytes().decode()
        except (EOFError, OSError):
            return f"{what} {self._ending()}."

    def _start(self) -> Connection:
        self._ours, theirs = _FORK.Pipe()
        self._process = _FORK.Process(target=_serve, args=(theirs, self._ours, self._do, self._limits), daemon=True)
        self._process.start()
        theirs.close()
        return self._ours

    def _ending(self) -> str:
        """Return how the process ended that did not answer."""
        assert self._process is not None
        self._process.join(self._limits.wall_s)
        code = self._process.exitcode or 0
        if code == -signal.SIGXCPU:
            return f"needed more than {self._limits.cpu_s} s of processor time"
        if code == -signal.SIGKILL:
            return "was killed, as the system does where memory runs out"
        return f"ended its process ({f'signal {-code}' if code < 0 else f'exit status {code}'})"


def _serve(theirs: Connection, ours: Connection, do: Callable[..., object], limits: StepLimits) -> None:
    """Run steps until the other end is closed; this is the process."""
    ours.close()  # otherwise this process would not see the end of the other one
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the other process is interrupted, too, and ends this one
    _limit(resource.RLIMIT_CORE, 0)
    _limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    _limit(resource.RLIMIT_DATA, _data_bytes() + limits.memory_bytes)
    while True:
        try:
            step, *arguments = json.loads(theirs.recv_bytes())
        except (EOFError, OSError):
            os._exit(0)
        used = resource.getrusage(resource.RUSAGE_SELF)
        _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime) + limits.cpu_s)
        said = _said(do, step, arguments)
        with contextlib.suppress(OSError):
            theirs.send_bytes(said.encode("utf-8", "replace"))


def _said(do: Callable[..., object], step: str, arguments: list[str]) -> str:
    """Run one step, and return why it failed, or an empty string."""
    try:
        do(step, *arguments)
    except NbgraderError as error:
        return str(error) or step
    except MemoryError:
        return f"nbgrader {step} {' '.join(arguments)}: it needed too much memory."
    except BaseException as error:
        return f"nbgrader {step} {' '.join(arguments)}: {type(error).__name__}: {error}"
    return ""


def _limit(what: int, soft: int) -> None:
    hard = resource.getrlimit(what)[1]
    resource.setrlimit(what, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def _data_bytes() -> int:
    """Return how much private memory this process has already."""
    (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmData:")]
    return int(line.split()[1]) << 10
