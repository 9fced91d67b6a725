"""Open a level of isolation, or skip where this machine does not have it; never where an attack on it succeeds."""

from __future__ import annotations

import pytest

from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox

SUCCEEDED = "student code could"  # how the sandbox says that an attack on a level got through


def opened(level: int | str) -> Sandbox:
    """The sandbox of a level, or the strongest of this machine for ``"auto"``."""
    try:
        return open_sandbox(level if level == "auto" else int(level), trust=level == 5)
    except SandboxError as error:
        if level in ("auto", 5) or SUCCEEDED in str(error):
            raise
        pytest.skip(str(error))
