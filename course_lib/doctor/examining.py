"""`doctor`: look at versions, tools, threads, CUDA, disk, and at what would ask the network."""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

from course_lib.doctor.report import Finding, Health, Report
from course_lib.timing import environment

OLDEST_PYTHON = (3, 11)
TORCH = "2.13"  # the version that the lessons were written for
PACKAGES = ("numpy", "transformers", "matplotlib", "tensorboard", "jupyterlab")
DISK_BYTES = 1 * 2**30  # event files, checkpoints, compiled kernels
MISSING = "not found"
ASK_S = 20.0


def doctor() -> Report:
    """Look at this machine and return what was found, with advice where something is missing.

        >>> doctor()["python"].health.value
        'fine'

    Nothing is changed, and nothing asks the network. The compilers are asked for their versions, which takes a moment.
    """
    here = environment()
    return Report(
        (
            Finding("machine", f"{here.processor}, {here.cores} cores", Health.FINE),
            _python(sys.version_info[:2], here.python),
            Finding("interpreter", _interpreter(), Health.FINE),
            _torch(_version("torch")),
            *(_package(name, _version(name)) for name in PACKAGES),
            _compiler(_asked("g++", "--version"), has_headers=_python_headers().is_file()),
            _tool("graphviz", _asked("dot", "-V"), "Graphs are then shown as text; the package is called graphviz."),
            _threads(here.threads, here.cores),
            _cuda(),
            _disk(shutil.disk_usage(Path.cwd()).free),
            _offline(os.environ.get("HF_HUB_OFFLINE", "")),
        )
    )


def _python(version: tuple[int, ...], text: str) -> Finding:
    if version < OLDEST_PYTHON:
        return Finding("python", text, Health.MEND, f"The course needs Python {'.'.join(map(str, OLDEST_PYTHON))}.")
    return Finding("python", text, Health.FINE)


def _interpreter() -> str:
    """Which Python runs, and whether it is the kernel of a notebook."""
    runs_as = "kernel of a notebook" if "ipykernel" in sys.modules else "without a notebook"
    return f"{Path(sys.prefix).name}, {runs_as}"


def _torch(version: str) -> Finding:
    if version == MISSING:
        return Finding("torch", version, Health.MEND, "Install the versions of constraints.txt.")
    if not version.startswith(TORCH + "."):
        return Finding("torch", version, Health.NOTE, f"Written for {TORCH}: graphs and messages may differ.")
    return Finding("torch", version, Health.FINE)


def _package(name: str, version: str) -> Finding:
    if version == MISSING:
        return Finding(name, version, Health.MEND, "Install the versions of constraints.txt.")
    return Finding(name, version, Health.FINE)


def _compiler(version: str, *, has_headers: bool) -> Finding:
    if version == MISSING:
        advice = "torch.compile and the C++ sections need it; the package is called g++."
        return Finding("compiler", version, Health.MEND, advice)
    if not has_headers:
        return Finding("compiler", version, Health.MEND, "Python.h is missing; the package is called python3-dev.")
    return Finding("compiler", version, Health.FINE)


def _tool(name: str, version: str, advice: str) -> Finding:
    return Finding(name, version, Health.NOTE, advice) if version == MISSING else Finding(name, version, Health.FINE)


def _threads(threads: int | None, cores: int) -> Finding:
    found = f"{threads or '?'} for torch, of {cores} cores"
    if threads is not None and threads > cores:
        return Finding("threads", found, Health.NOTE, "More threads than cores: times jump. Set OMP_NUM_THREADS=1.")
    return Finding("threads", found, Health.FINE)


def _cuda() -> Finding:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return Finding("cuda", "none", Health.NOTE, "Every cell runs on the CPU; those that gain from CUDA say so.")
    return Finding("cuda", f"{torch.cuda.get_device_name()}, CUDA {torch.version.cuda}", Health.FINE)


def _disk(free_bytes: int) -> Finding:
    found = f"{free_bytes / 2**30:.0f} GiB free"
    if free_bytes < DISK_BYTES:
        return Finding("disk", found, Health.MEND, f"The course writes up to {DISK_BYTES / 2**30:.0f} GiB; make room.")
    return Finding("disk", found, Health.FINE)


def _offline(setting: str) -> Finding:
    if setting in ("", "0"):
        return Finding(
            "offline", "allowed to ask", Health.FINE, "No cell asks it; HF_HUB_OFFLINE=1 makes sure of that."
        )
    return Finding("offline", "the network is not asked", Health.FINE)


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return MISSING


def _python_headers() -> Path:
    return Path(sysconfig.get_path("include")) / "Python.h"


def _asked(program: str, option: str) -> str:
    """The first line that a program prints about itself."""
    try:
        answer = subprocess.run([program, option], capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return MISSING
    return (answer.stdout or answer.stderr).strip().splitlines()[0]
