"""Chooses the strongest level that this machine has."""

from __future__ import annotations

from typing import Literal

from autograder.host.sandbox.bubblewrap import Bubblewrap
from autograder.host.sandbox.cgroup import find_hierarchy
from autograder.host.sandbox.plain import Plain
from autograder.host.sandbox.sandbox import Sandbox


def open_sandbox(level: int | Literal["auto"] = "auto", *, trust: bool = False) -> Sandbox:
    """Return the sandbox."""
    hierarchy = find_hierarchy()
    if level == 5 and trust:
        return Plain()
    if level == "auto":
        return Bubblewrap(hierarchy)
    return Bubblewrap(hierarchy if level == 1 else None)


def describe() -> str:
    """Describe."""
    return f"level {open_sandbox().level}"
