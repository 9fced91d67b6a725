"""Both sides run in real-time priority, or none, and all are ordinary programs afterwards."""

import os
import subprocess
import sys

import pytest

from autograder.host.clock.trial import Plan, real_time_priority
from autograder.host.sandbox import open_sandbox
from tests import skips
from tests.autograder.host.timed_exercise import HONEST, contest_of

ROUND_ROBIN = os.SCHED_RR | os.SCHED_RESET_ON_FORK


@pytest.fixture
def other():
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
