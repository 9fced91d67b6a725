"""Both sides of a trial run in real time where the system permits it, and are ordinary programs afterwards."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.host.clock.real_time import real_time_priority
from autograder.host.clock.trial import Plan
from autograder.host.sandbox import open_sandbox
from autograder.host.sandbox.resources import cgroup
from tests import skips
from tests.autograder.host.timed_exercise import HONEST, contest_of

ROUND_ROBIN = os.SCHED_RR | os.SCHED_RESET_ON_FORK


@pytest.fixture
def other() -> Iterator[int]:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    yield process.pid
    process.kill()
    process.wait()
    process.stdin.close()


def policies(*pids):
    return [os.sched_getscheduler(pid) for pid in pids]


def test_all_are_ordinary_again_afterwards(other):
    with real_time_priority() as priority:
        priority.add(other)
        if not priority.raised:
            pytest.skip(f"{skips.ROOT}: to schedule in real time")
        assert policies(0, other) == [ROUND_ROBIN, ROUND_ROBIN]
    assert policies(0, other) == [os.SCHED_OTHER, os.SCHED_OTHER]


@pytest.mark.parametrize("nobody", [0, -1, 2**22 + 7])
def test_if_one_process_cannot_be_raised_none_is(nobody, other):
    with real_time_priority() as priority:
        priority.add(other, nobody)
        assert priority.raised == []
        assert policies(0, other) == [os.SCHED_OTHER, os.SCHED_OTHER]


def test_both_workers_of_a_trial_are_known_by_their_numbers():
    of = contest_of(HONEST, open_sandbox())
    candidate, baseline = of._candidate(), of._baseline()
    pids = [side.session.worker_pid for side in (candidate, baseline)]
    candidate.close()
    baseline.close()

    assert all(pid > 1 for pid in pids)
    assert len({*pids, os.getpid()}) == 3


def test_a_trial_records_whether_it_ran_in_real_time():
    with real_time_priority() as priority:
        allowed = bool(priority.raised)
    assert contest_of(HONEST, open_sandbox()).trial(Plan(max_pairs=9, budget_s=0.1)).undisturbed is allowed


def test_every_worker_of_many_may_run_in_real_time_and_is_back_in_its_group_afterwards():
    with real_time_priority() as priority:
        if not priority.raised:
            pytest.skip(f"{skips.ROOT}: to schedule in real time")
    sides = [contest_of(HONEST, open_sandbox())._baseline() for _ in range(6)]
    pids = [side.session.worker_pid for side in sides]
    groups = [Path("/proc", str(pid), "cgroup").read_text() for pid in pids]
    with real_time_priority() as priority:
        priority.add(*pids)
        raised = policies(*pids)
    after = [Path("/proc", str(pid), "cgroup").read_text() for pid in pids]
    ordinary = policies(*pids)
    for side in sides:
        side.close()

    assert raised == [ROUND_ROBIN] * 6
    assert ordinary == [os.SCHED_OTHER] * 6
    assert after == groups


@pytest.mark.parametrize("divided", [True, False])
def test_a_worker_leaves_its_group_only_where_real_time_is_divided(
    divided: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = tmp_path / "autograder-7-0"
    group.mkdir()
    if divided:
        (group / "cpu.rt_runtime_us").write_text("0")
    monkeypatch.setattr(cgroup, "_directories_of", lambda process: {"cpu": group})

    assert cgroup.leave_processor_group(41) == (group if divided else None)
    assert (tmp_path / "cgroup.procs").exists() is divided
