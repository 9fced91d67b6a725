"""Examine this machine, and report what was found as text, HTML and data."""

import dataclasses
import html
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from course_lib.show import Cell, Table
from course_lib.timing import environment
from course_lib.timing.environment import version_of

COLUMNS = ("what", "found", "health", "what to do")
COLOURS = {"fine": "20,140,90", "note": "128,128,128", "mend": "205,60,50"}


class Health(StrEnum):
    """State whether a finding is fine."""

    FINE = "fine"
    NOTE = "note"  # the course still works; the advice says what differs
    MEND = "mend"  # some cells will fail


@dataclass(frozen=True)
class Finding:
    """Hold one thing that was examined."""

    name: str  # e.g. "torch"
    found: str  # e.g. "2.13.0+cpu"; "not found" if it is missing
    health: Health
    advice: str = ""  # what to do, or what differs; empty if fine

    def __post_init__(self) -> None:
        object.__setattr__(self, "health", Health(self.health))


@dataclass(frozen=True)
class Report:
    """Hold all findings, in the order in which they were made.

    >>> report = Report((Finding("python", "3.11.2", Health.FINE),))
    >>> report["python"].found, report.healthy
    ('3.11.2', True)
    """

    findings: tuple[Finding, ...]

    @property
    def healthy(self) -> bool:
        """Tell whether nothing has to be mended."""
        return all(finding.health is not Health.MEND for finding in self.findings)

    @property
    def verdict(self) -> str:
        """Return one sentence on the whole machine."""
        broken = [finding.name for finding in self.findings if finding.health is Health.MEND]
        return f"To be mended first: {', '.join(broken)}." if broken else "This machine has all that the course needs."

    def __getitem__(self, name: str) -> Finding:
        """Return the finding of that name; raises KeyError for another."""
        for finding in self.findings:
            if finding.name == name:
                return finding
        raise KeyError(f"the doctor looked at {', '.join(f.name for f in self.findings)}, and not at {name!r}")

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        findings = [dataclasses.asdict(finding) | {"health": finding.health.value} for finding in self.findings]
        return {"healthy": self.healthy, "findings": findings}

    def __str__(self) -> str:
        return f"{self._table()}\n{self.verdict}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"{self._table()._repr_html_()}<p>{html.escape(self.verdict)}</p>"

    def _table(self) -> Table:
        rows = tuple((f.name, f.found, _badge(f.health), f.advice) for f in self.findings)
        return Table(COLUMNS, rows, rule="line")


def _badge(health: Health) -> Cell:
    style = f"background:rgba({COLOURS[health]},.18);padding:0 8px"
    return Cell(health.value, html=f'<span style="{style}">{health}</span>')


OLDEST_PYTHON = (3, 11)
TORCH = "2.13"  # the version that the lessons were written for
PACKAGES = ("numpy", "transformers", "matplotlib", "tensorboard", "jupyterlab")
LATER_PACKAGES: Mapping[str, str] = {  # a package -> the lessons that need it
    "triton": "lesson 12",
    "onnx": "lessons 14 and 16",
    "onnxscript": "lessons 14 and 16",
    "onnxruntime": "lessons 14 and 16",
    "netron": "lesson 14",
    "ai-edge-model-explorer": "lesson 14",
    "lightning": "lesson 16",
}
DISK_BYTES = 1 * 2**30  # event files, checkpoints, compiled kernels
MISSING = "not found"
ASK_S = 20.0


def doctor() -> Report:
    """Look at this machine and return what was found, with advice where something is missing.

        >>> doctor()["python"].health.value
        'fine'

    Nothing is changed, and the network is not used. Querying the compilers' versions takes a moment.
    """
    here = environment()
    return Report(
        (
            Finding("machine", f"{here.processor}, {here.cores} cores", Health.FINE),
            _python(sys.version_info[:2], here.python),
            Finding("interpreter", _interpreter(), Health.FINE),
            _torch(version_of("torch") or MISSING),
            *(
                _needed(name, version_of(name) or MISSING, "Install the versions of constraints.txt.", Health.MEND)
                for name in PACKAGES
            ),
            *(
                _needed(
                    name,
                    version_of(name) or MISSING,
                    f"Needed in {lessons}; install the versions of constraints.txt.",
                    Health.MEND,
                )
                for name, lessons in LATER_PACKAGES.items()
            ),
            _compiler(
                _asked("g++", "--version"), has_headers=(Path(sysconfig.get_path("include")) / "Python.h").is_file()
            ),
            _needed("graphviz", _asked("dot", "-V"), "Graphs are then shown as text; the package is called graphviz."),
            _threads(here.threads, here.cores),
            _cuda(),
            _disk(shutil.disk_usage(Path.cwd()).free),
            _offline(os.environ.get("HF_HUB_OFFLINE", "")),
        )
    )


def _finding(name: str, found: str, advice: str, *, wrong: bool, health: Health = Health.MEND) -> Finding:
    """Return a finding that is fine, or one with advice if something is wrong."""
    return Finding(name, found, health, advice) if wrong else Finding(name, found, Health.FINE)


def _python(version: tuple[int, ...], text: str) -> Finding:
    advice = f"The course needs Python {'.'.join(map(str, OLDEST_PYTHON))}."
    return _finding("python", text, advice, wrong=version < OLDEST_PYTHON)


def _interpreter() -> str:
    """Return which Python runs, and whether it is the kernel of a notebook."""
    runs_as = "kernel of a notebook" if "ipykernel" in sys.modules else "without a notebook"
    return f"{Path(sys.prefix).name}, {runs_as}"


def _torch(version: str) -> Finding:
    if version == MISSING:
        return Finding("torch", version, Health.MEND, "Install the versions of constraints.txt.")
    if not version.startswith(TORCH + "."):
        return Finding("torch", version, Health.NOTE, f"Written for {TORCH}: graphs and messages may differ.")
    return Finding("torch", version, Health.FINE)


def _needed(name: str, version: str, advice: str, health: Health = Health.NOTE) -> Finding:
    return _finding(name, version, advice, wrong=version == MISSING, health=health)


def _compiler(version: str, *, has_headers: bool) -> Finding:
    if version == MISSING:
        advice = "torch.compile and the C++ sections need it; the package is called g++."
        return Finding("compiler", version, Health.MEND, advice)
    advice = "Python.h is missing; the package is called python3-dev."
    return _finding("compiler", version, advice, wrong=not has_headers)


def _threads(threads: int | None, cores: int) -> Finding:
    found, too_many = f"{threads or '?'} for torch, of {cores} cores", threads is not None and threads > cores
    advice = "More threads than cores: times jump. Set OMP_NUM_THREADS=1."
    return _finding("threads", found, advice, wrong=too_many, health=Health.NOTE)


def _cuda() -> Finding:
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_available():
        return Finding("cuda", "none", Health.NOTE, "Every cell runs on the CPU; those that gain from CUDA say so.")
    architecture = "sm_{}{}".format(*torch.cuda.get_device_capability())
    found = f"{torch.cuda.get_device_name()} ({architecture}), CUDA {torch.version.cuda}"
    try:
        ran = torch.ones(1024, device="cuda").sum().item() == 1024
    except RuntimeError:  # the driver lists devices for which this torch has no kernels
        ran = False
    if ran:
        return Finding("cuda", f"{found}, a kernel ran", Health.FINE)
    return Finding("cuda", f"{found}, no kernel runs", Health.MEND, _WITHOUT_KERNELS.format(_built_for(torch)))


_WITHOUT_KERNELS = (
    "This torch has kernels for {}. Install one that knows this GPU, or hide it: "
    "with CUDA_VISIBLE_DEVICES= before Jupyter starts, every cell runs on the CPU."
)


def _built_for(torch: Any) -> str:
    return ", ".join(torch.cuda.get_arch_list()) or "no GPU"


def _disk(free_bytes: int) -> Finding:
    advice = f"The course writes up to {DISK_BYTES / 2**30:.0f} GiB; make room."
    return _finding("disk", f"{free_bytes / 2**30:.0f} GiB free", advice, wrong=free_bytes < DISK_BYTES)


def _offline(setting: str) -> Finding:
    if setting in ("", "0"):
        return Finding(
            "offline", "allowed to ask", Health.FINE, "No cell asks it; HF_HUB_OFFLINE=1 makes sure of that."
        )
    return Finding("offline", "the network is not asked", Health.FINE)


def _asked(program: str, option: str) -> str:
    """Return the first line that a program prints about itself."""
    try:
        answer = subprocess.run([program, option], capture_output=True, text=True, timeout=ASK_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return MISSING
    return (answer.stdout or answer.stderr).strip().splitlines()[0]
