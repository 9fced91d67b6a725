"""What every tier offers: start a worker under limits."""

from __future__ import annotations

import json
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path

from autograder.host.sandbox.limits import Limits
from autograder.host.sandbox.process import WorkerProcess

WORKER = "from autograder.worker.main import main\nmain(fd=3)\n"
INSIDE = Path(__file__).parent / "inside"


class Sandbox(ABC):
    """A way to run student code; ``level`` and ``notes`` go into every record."""

    level: int
    notes: tuple[str, ...]

    def start(self, *, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        """Start the worker; it has the other end of ``WorkerProcess.socket`` as descriptor 3.

        ``masked`` names packages or modules of course_lib that do not exist for this worker.
        """
        return self._start(WORKER, limits, masked)

    @abstractmethod
    def _start(self, program: str, limits: Limits, masked: Sequence[str] = ()) -> WorkerProcess:
        """Start a program given as text, as the worker would be started."""


def interpreter_arguments(program: str, limits: Limits, *, channel: int, path: str, count_processes: bool) -> list[str]:
    """Return what follows the interpreter on the command line: bootstrap, options, program."""
    rlimits = {
        "RLIMIT_CORE": 0,
        # A second net under the wall clock, for a worker whose host has died.
        "RLIMIT_CPU": math.ceil(limits.wall_s) * (os.cpu_count() or 1) + 1,
        # Of data, not of address space: torch and CUDA reserve far more addresses than they use.
        "RLIMIT_DATA": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_MSGQUEUE": 0,
    }
    if count_processes:
        rlimits["RLIMIT_NPROC"] = limits.processes
    options = json.dumps({"channel": channel, "path": path, "rlimits": rlimits})
    return ["-I", "-B", "-c", (INSIDE / "bootstrap.py").read_text(), options, program]


def environment(home: str) -> dict[str, str]:
    """Return all variables a worker has; one thread each, because the machine is shared with other workers."""
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "USER": "student",
        "LOGNAME": "student",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
    }
