"""The interpreter of a worker or a zygote: its command line, its environment and the limits that it sets itself."""

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path

from autograder.host.sandbox.resource_limits import Limits

ZYGOTE = "from autograder.worker.zygote.zygote import serve\nserve(3, preload={preload})\n"
INSIDE = Path(__file__).parent / "inside"


def rlimits(limits: Limits, *, processes: int | None) -> dict[str, int]:
    """Return the limits that a process sets for itself; `processes` counts all processes of its user."""
    numbers = {
        "RLIMIT_CORE": 0,
        # Ends a worker whose host has died, when no wall clock does.
        "RLIMIT_CPU": math.ceil(limits.wall_s) * (os.cpu_count() or 1) + 1,
        # Data, not address space: torch and CUDA reserve far more addresses than they use.
        "RLIMIT_DATA": limits.memory_bytes,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_MSGQUEUE": 0,
    }
    return numbers if processes is None else {**numbers, "RLIMIT_NPROC": processes}


def interpreter_arguments(program: str, numbers: Mapping[str, int], *, channel: int, path: str) -> list[str]:
    """Return the interpreter's command-line arguments: bootstrap, options and program."""
    options = json.dumps({"channel": channel, "path": path, "rlimits": numbers})
    return ["-I", "-B", "-c", (INSIDE / "bootstrap.py").read_text(), options, program]


def environment(home: str) -> dict[str, str]:
    """Return all variables of a worker; one thread each, because workers share the machine."""
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
