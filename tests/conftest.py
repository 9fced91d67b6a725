"""Holds for all tests: a test is called the same in every process, and none pays for what all have loaded."""

import gc

import pytest

from autograder.host.sandbox import zygote


def pytest_configure() -> None:
    """Look for no garbage while tests are collected: what is imported then stays.

    And let a zygote serve for a whole run: our own hostile answers do not build on an address layout they know.
    """
    gc.disable()
    zygote.JOBS = 100_000


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later search for garbage, which would take seconds each time."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that hold an address: processes that share the tests out could not agree on them."""
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        raise pytest.UsageError(f"{odd[0]} holds an address; give parametrize ids that are the same in every process")
