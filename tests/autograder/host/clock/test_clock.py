"""The judge's verdicts on workers with known times are right, even with noise."""

import dataclasses
import math
import random
from types import SimpleNamespace

import pytest
import torch

from autograder.exercises import find
from autograder.host.clock.contest import SHOWN, SHOWN_AGAIN, show
from autograder.host.clock.side import net_us, problems_for
from autograder.host.clock.trial import (
    MOST_EMPTY,
    WINDOW_US,
    Plan,
    Trial,
    WrongTimedOutputError,
    run_trial,
)
from autograder.host.clock.verdict import DISTURBED, TOO_GOOD, Assessment, assess, enough, settled
from autograder.host.speed import Speed, Thresholds
from autograder.host.traced import Program
from course_lib.errors import TimingError
from course_lib.timing import Verdict, decide_speedup
from course_lib.timing.decisions import Pair
from tests.autograder.host.timed_exercise import EMPTY_US, SimulatedSide, job, scatter

NOISES = {
    "quiet": {"spread": 0.01},
    "loaded": {"spread": 0.1, "bursts": 0.2},
    "bursty": {"spread": 0.2, "bursts": 0.4},
}
SOME = Plan(max_pairs=60)
PROBLEM_US = 700.0  # so that a round takes few problems, whose outputs are all compared


def trial(ratio: float, *, plan: Plan = SOME, noise: str = "quiet", seed: int = 0) -> Trial:
    """An answer that is exactly `ratio` times as fast as a baseline."""
    candidate = SimulatedSide(PROBLEM_US / ratio, scatter(2 * seed, **NOISES[noise]))
    return run_trial(candidate, SimulatedSide(PROBLEM_US, scatter(2 * seed + 1, **NOISES[noise])), job(), plan)


def judged(ratio: float, thresholds: Thresholds, noise: str, seed: int) -> Assessment:
    attempts = iter(range(100 * seed, 100 * seed + 100))
    plan = Plan(enough=enough(thresholds))
    return assess(
        lambda: trial(ratio, plan=plan, noise=noise, seed=next(attempts)),
        lambda pairs: trial(1.0, plan=Plan(max_pairs=pairs), noise=noise, seed=next(attempts)),
        thresholds,
    )


class Asked(Thresholds):
    passing, full = 1.2, 2.0


def test_the_size_of_a_round_follows_from_rounds_of_about_that_size():
    baseline = SimulatedSide(100.0, beginning_us=1_000.0)
    run_trial(SimulatedSide(100.0), baseline, job(), Plan(max_pairs=9))

    assert baseline.sizes[-1] >= 6  # a round of one problem says that a problem takes 1,100 µs, so 2 fill a round


@pytest.mark.parametrize("noise", ["quiet", "loaded"])
def test_a_known_ratio_of_1_5_passes_at_1_2_and_fails_at_2_in_100_of_100_runs(noise):
    results = [judged(1.5, Asked(10.0), noise, seed) for seed in range(100)]

    assert {r.passing.verdict for r in results} == {Verdict.PASS}
    assert {r.full.verdict for r in results} == {Verdict.FAIL}


@pytest.mark.parametrize("noise", NOISES)
def test_the_baseline_against_itself_is_as_fast_as_itself(noise):
    tolerance = {"quiet": 0.01, "loaded": 0.02, "bursty": 0.05}[noise]

    assert trial(1.0, plan=Plan(max_pairs=200), noise=noise, seed=4).ratio == pytest.approx(1.0, rel=tolerance)


def test_the_cost_of_an_empty_round_is_subtracted_and_the_round_is_long_enough():
    found = trial(3.0, noise="quiet")

    assert found.empty_us == EMPTY_US
    assert found.ratio == pytest.approx(3.0, rel=0.01)
    assert found.problems * PROBLEM_US >= WINDOW_US > (found.problems - 1) * PROBLEM_US * 0.9
    assert found.answer_us == pytest.approx(PROBLEM_US / 3.0, rel=0.03)


def test_an_empty_round_measured_too_slow_creates_no_speedup():
    slow_empty = SimulatedSide(PROBLEM_US)
    slow_empty.empty_us = lambda problems, bare=False: 1e6  # type: ignore[method-assign]
    found = run_trial(SimulatedSide(PROBLEM_US), slow_empty, job(), Plan(max_pairs=9))

    assert found.ratio == pytest.approx(1.0)
    assert found.empty_us == pytest.approx(MOST_EMPTY * (EMPTY_US + PROBLEM_US * found.problems))
    assert net_us(100.0, 1e6) == 25.0
    assert [problems_for(2_000, one, 64) for one in (150.0, 5_000.0, 0.1)] == [14, 1, 64]


def test_the_size_of_a_round_follows_from_the_baseline_alone():
    candidate, baseline = SimulatedSide(1e6), SimulatedSide(PROBLEM_US)
    run_trial(candidate, baseline, job(), Plan(max_pairs=9))

    assert candidate.sizes == baseline.sizes[-1:]


WRONG = {
    "zeros": ({"spoil": lambda outputs: (outputs[0] * 0,)}, "fresh inputs"),
    "NaN": ({"spoil": lambda outputs: (outputs[0] * float("nan"),)}, "fresh inputs"),
    "slightly off": ({"spoil": lambda outputs: (outputs[0] + 1e-3,)}, "fresh inputs"),
    "late": ({"wrote_late": True}, "still being written"),
    "mutated": ({"wrote_inputs": True}, "wrote into its inputs"),
}


@pytest.mark.parametrize("name", WRONG)
def test_every_timed_output_is_verified(name):
    change, words = WRONG[name]
    with pytest.raises(WrongTimedOutputError, match=words):
        run_trial(SimulatedSide(50.0, **change), SimulatedSide(PROBLEM_US), job(), Plan(max_pairs=9))


def decision(ratio: float, asked: float = 1.3):
    return decide_speedup([Pair(100.0, 100.0 * ratio)] * 9, asked)


PASS, FAIL = decision(1.5), decision(1.0)
UNDECIDED = decide_speedup([Pair(100.0, 100.0 * r) for r in [1.0, 1.5] * 10], 1.3)
STANDS = [
    ([PASS], "pass"), ([FAIL], None), ([FAIL, FAIL], "fail"), ([FAIL, PASS], None), ([FAIL, PASS, PASS], "pass"),
    ([FAIL, PASS, FAIL], "fail"), ([UNDECIDED], None), ([UNDECIDED, PASS], "pass"),
]  # fmt: skip


@pytest.mark.parametrize(("decisions", "verdict"), STANDS)
def test_a_pass_stands_at_once_and_a_failure_when_it_is_repeated(decisions, verdict):
    found = settled(decisions)

    assert (found and found.verdict) == verdict


ERRATIC = [Pair(100.0, 100.0 * r) for r in [0.2, 5.0, 1.5, 1.1] * 12]


def test_an_erratic_answer_on_a_steady_machine_keeps_its_share_in_the_marks():
    steady = trial(1.0, plan=Plan(max_pairs=48))
    result = assess(lambda: Trial(1, ERRATIC), lambda pairs: steady, Thresholds(2.0))

    assert decide_speedup(ERRATIC, 1.3).verdict is Verdict.ENVIRONMENT
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the answer's own times scatter" in result.flags[0] or "do not agree" in result.flags[0]


@pytest.mark.parametrize(("first", "trials"), [([1.5, 1.6] * 6, 1), ([0.1, 1.7] * 6, 2)])
def test_a_ratio_to_show_is_measured_again_where_other_programs_disturb_the_first(first, trials):
    asked = []

    def timed(plan):
        asked.append(plan)
        return Trial(1, [Pair(100.0, 100.0 * r) for r in (first if len(asked) == 1 else [1.7] * 12)])

    speed = find("05_bias_silu_pass").speed
    record = show(SimpleNamespace(trial=timed, thresholds=Thresholds(2.0), speed=speed, device="cpu"))

    assert asked == [SHOWN, SHOWN_AGAIN][:trials]
    assert record.ratio == pytest.approx(1.55 if trials == 1 else 1.7)


def test_the_machine_is_blamed_only_if_the_baseline_scatters_against_itself():
    blamed = assess(lambda: Trial(1, ERRATIC), lambda pairs: Trial(1, ERRATIC), Thresholds(2.0))
    known = assess(lambda: Trial(1, ERRATIC), lambda pairs: Trial(1, ERRATIC), Thresholds(2.0), lambda: ["busy"])

    assert blamed.verdict is Verdict.ENVIRONMENT
    assert known.verdict is Verdict.ENVIRONMENT
    assert {(result.least, result.most) for result in (blamed, known)} == {(0.0, 1.0)}


@pytest.mark.parametrize(("faults", "flags"), [((), 1), (("busy",), 0)])
def test_a_ratio_on_a_machine_with_a_known_fault_makes_no_answer_suspicious(faults, flags):
    beyond = Trial(1, [Pair(100.0, 300.0)] * 12)
    found = assess(lambda: beyond, lambda pairs: beyond, Thresholds(2.0), lambda: faults)

    assert (len(found.flags), found.suspicious) == (flags, bool(flags))


def test_a_ratio_that_memory_does_not_allow_is_suspicious():
    result = judged(2.2, Thresholds(2.0), "quiet", 1)

    assert result.verdict is Verdict.PASS
    assert result.flags[0].startswith(TOO_GOOD)
    assert result.suspicious


def beside_a_hog(slowed: float, true_ratio: float, *, share: float = 1.0, spread: float = 0.0) -> Assessment:
    """An answer that slows the baseline down in a share of its rounds; its own times spread."""
    lot = random.Random(3)

    def attempt() -> Trial:
        answer = SimulatedSide(PROBLEM_US / true_ratio, scatter(lot.randrange(100), spread=spread), is_clean=False)

        def beside() -> float:
            return 1.0 if answer.closed or not answer.sizes or lot.random() >= share else slowed

        return run_trial(answer, SimulatedSide(PROBLEM_US, alone=beside), job(), Plan(max_pairs=60))

    return assess(attempt, lambda pairs: trial(1.0), Thresholds(2.0))


def test_a_baseline_that_was_slowed_down_is_suspicious_and_earns_nothing():
    result = beside_a_hog(1.6, 1.0)

    assert result.trial.disturbance == pytest.approx(1.6, rel=0.01)
    assert result.passing.verdict is Verdict.FAIL
    assert result.flags[0].startswith(DISTURBED)
    assert result.suspicious


def test_a_baseline_that_was_slowed_down_a_little_gives_the_true_ratio(monkeypatch):
    fair = beside_a_hog(1.2, 1.15)
    assert (fair.passing.verdict, fair.suspicious) == (Verdict.FAIL, False)
    assert fair.passing.ratio == pytest.approx(1.15, rel=0.01)

    monkeypatch.setattr(Trial, "credited", property(lambda trial: trial.pairs))
    assert beside_a_hog(1.2, 1.15).passing.verdict is Verdict.PASS  # 1.2 * 1.15


@pytest.mark.parametrize("slowed", [1.24, 1.6, 3.0])
def test_an_answer_that_disturbs_half_of_the_baselines_rounds_does_not_leave_its_ratio_undecided(slowed):
    result = beside_a_hog(slowed, 1.1, share=0.5)

    assert result.passing.verdict is Verdict.FAIL, result.passing.reason
    assert "all rounds together" in result.passing.reason or result.trial.disturbance > 1.05


def test_an_answer_whose_times_scatter_about_a_ratio_that_is_enough_keeps_its_share():
    found = beside_a_hog(1.0, 1.4, spread=0.3)

    assert found.passing.verdict is not Verdict.FAIL, found.passing.reason


@pytest.mark.parametrize(("ratio", "share"), [(1.8, 1.0), (1.5, 0.6), (1.1, 0.0)])
def test_the_share_of_the_points_follows_from_the_thresholds(ratio, share):
    found = judged(ratio, Thresholds(2.0), "quiet", 2)

    assert (found.least, found.most) == (share, share)


@pytest.mark.parametrize(
    ("passing", "full", "bounds"),
    [
        (Verdict.PASS, Verdict.PASS, (1.0, 1.0)),
        (Verdict.PASS, Verdict.FAIL, (0.6, 0.6)),
        (Verdict.FAIL, Verdict.FAIL, (0.0, 0.0)),
        (Verdict.PASS, Verdict.INCONCLUSIVE, (0.6, 1.0)),
        (Verdict.INCONCLUSIVE, Verdict.FAIL, (0.0, 1.0)),
        (Verdict.ENVIRONMENT, Verdict.FAIL, (0.0, 1.0)),
        (Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE, (0.0, 1.0)),
        (Verdict.ENVIRONMENT, Verdict.ENVIRONMENT, (0.0, 1.0)),
    ],
)
def test_an_undecided_verdict_leaves_points_to_counted_cost(passing, full, bounds):
    one = decide_speedup([Pair(1.0, 1.5)] * 9, 1.2)
    found = Assessment(*(dataclasses.replace(one, verdict=v) for v in (passing, full)), Trial(1), 1)

    assert (found.least, found.most) == bounds


def test_only_a_rebuilt_graph_may_exceed_what_bytes_allow():
    speed = Speed(Program("`x`", lambda: torch.tanh, (), 0), 2.0)

    limits = [speed.thresholds(device, rebuilt=rebuilt).too_good for device in ("cpu", "cuda") for rebuilt in (0, 1)]
    assert limits == [2.1, math.inf, pytest.approx(4.2), math.inf]


def test_thresholds_are_parts_of_the_way_to_the_ideal_ratio():
    asked = Thresholds(3.0)

    assert (asked.passing, asked.full, asked.bonus) == (1.6, 2.3, 2.7)
    assert asked.too_good == pytest.approx(3.15)
    with pytest.raises(TimingError, match="above 1"):
        Thresholds(1.0)


def test_speed_declares_what_it_needs_in_one_line_and_refuses_nonsense():
    program = Program("`x`", lambda: torch.tanh, (), 0)

    larger = Speed(program, 3.0)
    assert Speed(program, 2.0).on("cuda").ideal_ratio == 2.0
    assert [Speed(program, 2.0, on_gpu=larger).on(device).ideal_ratio for device in ("cpu", "cuda")] == [2.0, 3.0]
    with pytest.raises(TimingError, match="above 1"):
        Speed(program, 1.0)
