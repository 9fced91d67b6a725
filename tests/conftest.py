"""Holds for all tests: a test is called the same in every process, and none pays for what all have loaded."""

import gc
import os
import sys

import pytest
import torch

from autograder.host.sandbox.zygote import pool
from autograder.worker.untimed_guards import leave_guards_untimed
from tests import seeding, skips
from tests.early_backward import count_devices_early

# Inductor would compile and run a program to try the instructions that the processor says it has.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "1")
# Threads of OpenMP do not survive a fork: a test that forks would wait for them without end.
os.environ["OMP_NUM_THREADS"] = "1"
torch.set_num_threads(1)
count_devices_early()


def pytest_configure(config: pytest.Config) -> None:
    """Look for no garbage while tests are collected: what is imported then stays.

    And let a zygote serve for a whole run: our own hostile answers do not build on an address layout they know.
    """
    for plugin in (seeding, skips):
        config.pluginmanager.register(plugin)
    gc.disable()
    pool.JOBS = 100_000


def pytest_collection_finish() -> None:
    """Leave what was imported out of every later search for garbage, which would take seconds each time.

    And search more seldom: tests make many objects, and memory is there. And leave Dynamo's stopwatch out of captures:
    its number goes into a log that no test reads.
    """
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()
    if "torch._dynamo" in sys.modules:
        leave_guards_untimed()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the slow tests, so that no process works on one when all others have ended.

    And refuse names that hold an address: processes that share the tests out could not agree on them.
    """
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    odd = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if odd:
        raise pytest.UsageError(f"{odd[0]} holds an address; give parametrize ids that are the same in every process")
