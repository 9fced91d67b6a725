"""Some of the exercises, others in each run, for tests whose whole takes long; with WHOLE=1 all of them."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

from autograder.host.exercises import all_exercises

# Processes that share the tests of one run out have to draw the same.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID")


def drawn(count: int) -> Sequence[str]:
    """``count`` exercises, in their order."""
    everything = all_exercises()
    return everything if os.environ.get("WHOLE") else sorted(random.Random(_RUN).sample(everything, count))
