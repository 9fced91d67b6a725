"""Captures in workers do not wait for Dynamo's stopwatch."""

from unittest.mock import Mock

import pytest
import torch
from torch._dynamo import guards

from autograder.worker.untimed_guards import leave_guards_untimed


@pytest.fixture
def stopwatch(monkeypatch: pytest.MonkeyPatch) -> Mock:
    """Stands where Dynamo's own stood; all is put back after the test."""
    stands_in = Mock(return_value=0.0)
    monkeypatch.setattr(guards, "profile_guard_manager", stands_in)
    return stands_in


def capture() -> None:
    """Have Dynamo capture a function that it has not seen."""
    torch._dynamo.reset()
    torch.compile(lambda x: x.sin() + 1, backend="eager", fullgraph=True)(torch.ones(2))


def test_dynamo_asks_for_the_time_of_its_guards_where_we_think(stopwatch: Mock) -> None:
    capture()
    assert stopwatch.called, (
        f"torch {torch.__version__} times guards elsewhere; see autograder/worker/untimed_guards.py"
    )


def test_a_worker_captures_without_measuring(stopwatch: Mock) -> None:
    leave_guards_untimed()
    capture()
    assert not stopwatch.called
