"""Collect the facts of where a class was graded, which a report states so that a mark can be questioned later."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from autograder.host.records import GRADER_VERSION


@dataclass(frozen=True)
class Environment:
    """The versions and the machine with which a class was graded."""

    facts: tuple[tuple[str, str], ...]


def this_environment(*extra: tuple[str, str]) -> Environment:
    """Return the facts of this process and machine, followed by `extra` ones."""
    facts = (
        ("grader", GRADER_VERSION),
        ("Python", platform.python_version()),
        ("PyTorch", _version("torch")),
        ("nbgrader", _version("nbgrader")),
        ("machine", f"{platform.system()} {platform.machine()}, {len(os.sched_getaffinity(0))} cores"),
    )
    return Environment((*facts, *extra))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
