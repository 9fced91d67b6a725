"""The interpreter of a worker or a zygote: its command line, its environment and the limits that it sets itself."""

import json
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from autograder.host.sandbox.compute_device import CPU, Device
from autograder.host.sandbox.resource_limits import GIB, Limits

ZYGOTE = "from autograder.worker.zygote.zygote import serve\nserve(3, preload={preload})\n"
INSIDE = Path(__file__).parent / "inside"
WITHOUT_CUDA = {"CUDA_VISIBLE_DEVICES": "", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
"""Variables of a zygote. torch's modules ask for CUDA while they are imported, and a fork of a process that has asked
the driver cannot use CUDA. With these, torch answers no without asking. A worker gets its own variables after the
fork."""
DRIVER_DATA_BYTES = 2 * GIB
"""Additional data of a process with a GPU: importing torch for CUDA 13 takes 0.7 GiB; a context was not measured."""


def rlimits(limits: Limits, *, processes: int | None, device: Device = CPU) -> dict[str, int]:
    """Return the limits that a process sets for itself; `processes` counts all processes of its user."""
    numbers = {
        "RLIMIT_CORE": 0,
        # Ends a worker whose host has died, when no wall clock does.
        "RLIMIT_CPU": math.ceil(limits.wall_s) * (os.cpu_count() or 1) + 1,
        # Data, not address space: torch and CUDA reserve far more addresses than they use.
        "RLIMIT_DATA": limits.memory_bytes + (DRIVER_DATA_BYTES if device.cuda else 0),
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": 256,
        "RLIMIT_MSGQUEUE": 0,
    }
    if sys.platform == "darwin":  # which has no such queues, and refuses a limit of data
        del numbers["RLIMIT_DATA"], numbers["RLIMIT_MSGQUEUE"]
    return numbers if processes is None else {**numbers, "RLIMIT_NPROC": processes}


def interpreter_arguments(program: str, numbers: Mapping[str, int], *, channel: int, path: str) -> list[str]:
    """Return the interpreter's command-line arguments: bootstrap, options and program."""
    options = json.dumps({"channel": channel, "path": path, "rlimits": numbers})
    return ["-I", "-B", "-c", (INSIDE / "bootstrap.py").read_text(encoding="utf-8"), options, program]


def zygote_environment(home: str, device: Device = CPU) -> dict[str, str]:
    """Return all variables of a zygote, whose imports must not ask for CUDA."""
    return environment(home) | device.loader_variables | WITHOUT_CUDA


def environment(home: str, device: Device = CPU, *, alone: bool = True) -> dict[str, str]:
    """Return all variables of a worker; one thread each, because workers share the machine.

    `alone` says that the worker can open no GPU but its own.
    """
    return {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": home,
        "TMPDIR": home,
        "LANG": "C.UTF-8",
        "USER": "student",
        "LOGNAME": "student",
        "OMP_NUM_THREADS": "1",
        "MKL_NUM_THREADS": "1",
        **device.variables(alone=alone),
    }
