"""The seeds that grading draws for itself come from the seed of the run, so that a failure can be repeated."""

import random
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from autograder.classroom.batch import seed
from autograder.host import grading


@pytest.fixture(scope="session", autouse=True)
def seeds_of_gradings() -> Iterator[None]:
    """Let gradings and classes draw their seeds from Python's generator, which is seeded for each test."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (grading, seed):
            patch.setattr(module, "secrets", SimpleNamespace(randbits=lambda bits: random.getrandbits(bits)))
        yield
