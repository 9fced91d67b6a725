"""Open a level of isolation, or skip where this machine cannot have it; never where an attack on it succeeds."""

import os

from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox
from tests.autograder.host.sandbox.conftest import OWN_CONFINED
from tests.skips import skip_level

AT_LEVEL = "ATTACKS_AT_LEVEL"
"""The variable that names a level to try everything at, in place of the strongest; `readable.py` sets it."""
ASKED = os.environ.get(AT_LEVEL)
OWN_LEVELS = sorted({int(ASKED), 5}) if ASKED else [1, 2, OWN_CONFINED, 5]
"""The levels that this user can have, or the one asked for; and the one that isolates nothing."""


def weakest(promised: int) -> int:
    """Return the weakest level of this user that is at least as strong as `promised`, or `promised` if none is."""
    return max((level for level in OWN_LEVELS if level <= promised), default=promised)


def opened(level: int | str) -> Sandbox:
    """Return the sandbox of a level, or the strongest of this machine for `"auto"`."""
    if level == "auto":
        return open_sandbox(int(ASKED) if ASKED else "auto")
    try:
        return open_sandbox(int(level), trust=level == 5)
    except SandboxError as error:
        skip_level(error)
