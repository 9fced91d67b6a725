"""A part of what there is to try, another in each run, for tests whose whole takes long; with WHOLE=1 all of it."""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")
# Processes that share the tests of one run out have to draw the same.
_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "alone")


def some(things: Sequence[Thing], count: int, *, name: str) -> list[Thing]:
    """``count`` of ``things``, in their order; for each ``name`` others."""
    chance = random.Random(f"{_RUN} {name}")
    places = range(len(things)) if os.environ.get("WHOLE") else sorted(chance.sample(range(len(things)), count))
    return [things[place] for place in places]
