"""Holds for all tests: a test is called the same in every process."""

import pytest


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse names that hold an address: processes that share the tests out could not agree on them."""
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        raise pytest.UsageError(f"{odd[0]} holds an address; give parametrize ids that are the same in every process")
