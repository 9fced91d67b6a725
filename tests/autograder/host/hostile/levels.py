"""Open a level of isolation, or skip where this machine does not have it; never where an attack on it succeeds."""

from __future__ import annotations

import os

import pytest

from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox

SUCCEEDED = "student code could"  # how the sandbox says that an attack on a level got through
AT_LEVEL = "ATTACKS_AT_LEVEL"
"""The variable that names a level to try everything at, in place of the strongest; `readable.py` sets it."""


def opened(level: int | str) -> Sandbox:
    """The sandbox of a level, or the strongest of this machine for ``"auto"``."""
    asked = os.environ.get(AT_LEVEL)
    if asked and level == "auto":
        return open_sandbox(int(asked))
    if asked and level not in (int(asked), 5):
        pytest.skip(f"only level {asked} is tried")
    try:
        return open_sandbox(level if level == "auto" else int(level), trust=level == 5)
    except SandboxError as error:
        if level in ("auto", 5) or SUCCEEDED in str(error):
            raise
        pytest.skip(str(error))
