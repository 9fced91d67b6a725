"""Captures in workers do not wait for Dynamo's stopwatch."""

from __future__ import annotations

import pytest
import torch
from torch._dynamo import guards

from autograder.worker.untimed_guards import leave_guards_untimed


def capture() -> None:
    """Have Dynamo capture a function that it has not seen."""
    torch._dynamo.reset()
    torch.compile(lambda x: x.sin() + 1, backend="eager", fullgraph=True)(torch.ones(2))


def test_dynamo_asks_for_the_time_of_its_guards_where_we_think(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []
    monkeypatch.setattr(guards, "profile_guard_manager", lambda *given: asked.append(given) or 0.0)
    capture()
    assert asked, f"torch {torch.__version__} times its guards elsewhere; see autograder/worker/untimed_guards.py"


def test_a_worker_captures_without_measuring(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[object] = []
    monkeypatch.setattr(guards, "profile_guard_manager", lambda *given: measured.append(given) or 0.0)
    leave_guards_untimed()
    capture()
    assert not measured
