"""The one source of chance in tests: `COURSE_TEST_SEED`, drawn if it is not set, the same in all processes of a run.

Tests whose whole takes long try a part of what there is, another in each run; with WHOLE=1 all of it.
"""

import os
import random
import secrets
from collections.abc import Sequence
from typing import TypeVar

Thing = TypeVar("Thing")
VARIABLE = "COURSE_TEST_SEED"


def run_seed() -> int:
    """Return the seed of this run; if nobody has drawn it yet, draw it, for processes started from here too."""
    text = os.environ.setdefault(VARIABLE, str(secrets.randbelow(10**9)))
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise ValueError(f"{VARIABLE} is {text!r}; it is a whole number of at most 18 digits, such as 7.")
    return int(text)


def chance(name: str) -> random.Random:
    """Return a generator of random numbers, for each `name` another."""
    return random.Random(f"{run_seed()} {name}")


def some(things: Sequence[Thing], count: int, *, name: str) -> list[Thing]:
    """Return `count` of `things`, in their order; for each `name` others."""
    drawn = chance(name).sample(range(len(things)), count)
    places = range(len(things)) if os.environ.get("WHOLE") else sorted(drawn)
    return [things[place] for place in places]


def third(things: Sequence[Thing], *, name: str) -> list[Thing]:
    """Return a third of `things`, rounded up, in their order; for each `name` others."""
    return some(things, -(-len(things) // 3), name=name)
