"""Pairs, their order and their ratio, on a clock that stands still unless somebody works."""

import json

import pytest

from course_lib.errors import TimingError
from course_lib.timing import Verdict, compare, decide_speedup
from course_lib.timing.decisions import Pair
from course_lib.timing.measurement import Sampler
from course_lib.timing.paired_runs import Comparison, interleave, warm_up_in_turn
from course_lib.timing.sign_test import SignTest
from tests.course_lib.timing.fake_time import FakeTime


def compared(time: FakeTime, candidate, baseline, *, cut: float | None = None, max_pairs=50, budget_s=5.0, seed=0):
    """Return a comparison on the clock of `time`, and how many pairs it took."""
    clock = time.clock()
    sides = tuple(Sampler(clock, call, min_sample_us=0.0) for call in (candidate, baseline))
    warm_up_in_turn(clock, sides, 0.0)
    test = None if cut is None else SignTest(cut=cut, alpha=0.01)
    order = interleave(clock, sides, test, max_pairs=max_pairs, budget_s=budget_s, seed=seed)
    return Comparison(sides[0].timing(), sides[1].timing(), tuple(order), time.now_ns / 1e9, seed)


def test_a_ratio_above_one_means_that_the_candidate_is_faster():
    time = FakeTime()
    result = compared(time, time.work(100.0), time.work(150.0))

    assert result.ratio == 1.5
    assert result.interval == (1.5, 1.5)
    assert result.pairs[0] == Pair(candidate_us=100.0, baseline_us=150.0)
    assert (result.noise, result.correlation) == (0.0, 0.0)


def test_a_machine_that_slows_down_moves_both_times_and_not_the_ratio():
    time, speed = FakeTime(), {"factor": 1.0}

    def slowing(cost_us: float):
        def call():
            speed["factor"] *= 1.01
            time.now_ns += round(cost_us * speed["factor"] * 1e3)

        return call

    result = compared(time, slowing(100.0), slowing(120.0))

    assert result.candidate.max_us > 2 * result.candidate.min_us
    assert result.ratio == pytest.approx(1.2, rel=0.02)


def test_who_comes_first_is_drawn_by_lot_and_the_same_for_the_same_seed():
    orders = []
    for seed in (0, 0, 1):
        time = FakeTime()
        orders.append(compared(time, time.work(10.0), time.work(10.0), seed=seed).candidate_first)

    assert orders[0] == orders[1] != orders[2]
    assert 10 < sum(orders[0]) < 40


def test_who_is_said_to_come_first_comes_first():
    time, log = FakeTime(), []
    work = time.work(10.0)
    result = compared(time, lambda: (log.append("candidate"), work()), lambda: (log.append("baseline"), work()))
    in_pairs = log[-2 * len(result.pairs) :]

    assert [name == "candidate" for name in in_pairs[::2]] == list(result.candidate_first)
    assert {frozenset(pair) for pair in zip(in_pairs[::2], in_pairs[1::2], strict=True)} == {
        frozenset(("candidate", "baseline"))
    }


def test_it_stops_as_soon_as_the_pairs_decide():
    time = FakeTime()
    result = compared(time, time.work(100.0), time.work(150.0), cut=1.2 * 0.96)

    assert len(result.pairs) == 9
    assert decide_speedup(result.pairs, 1.2).verdict is Verdict.PASS


def test_the_budget_ends_a_comparison_but_not_before_five_pairs():
    time = FakeTime()
    assert len(compared(time, time.work(100_000.0), time.work(100_000.0), budget_s=2.0).pairs) == 10

    time = FakeTime()
    assert len(compared(time, time.work(10_000_000.0), time.work(10_000_000.0), budget_s=2.0).pairs) == 5


def test_three_quarters_of_the_work_are_measured_as_such():
    result = compare(lambda n: sum(range(3 * n)), lambda n: sum(range(4 * n)), 2_000, max_pairs=60, warmup_s=0.01)

    assert 1.15 < result.ratio < 1.55  # 1.33; wide, since this machine may be doing something else
    assert "times as fast" in str(result)
    assert json.loads(json.dumps(result.to_json()))["ratio"] == result.ratio


def test_a_threshold_lets_it_stop_early():
    result = compare(
        lambda: sum(range(1_000)), lambda: sum(range(30_000)), threshold=1.2, warmup_s=0.0, min_sample_us=20.0
    )

    assert len(result.pairs) < 40
    assert decide_speedup(result.pairs, 1.2).verdict is Verdict.PASS


@pytest.mark.parametrize(("candidate", "baseline"), [(None, sum), (sum, 3)])
def test_what_cannot_be_called_is_refused(candidate, baseline):
    with pytest.raises(TimingError, match=r"compare got a .* expects a callable"):
        compare(candidate, baseline, [1])


def test_five_pairs_bound_nothing_and_say_so():
    time = FakeTime()
    result = compared(time, time.work(100.0), time.work(150.0), max_pairs=5)

    assert "(too few pairs)" in str(result)
    assert "inf" not in str(result)
