"""Verdicts on simulated pairs, whose true ratio is known."""

import json
import math
import random
import subprocess
import sys
from collections import Counter

import pytest

from course_lib.errors import TimingError
from course_lib.timing.decisions import Pair, Verdict, decide_speedup

THRESHOLD, CUT = 1.2, 1.152
TRIALS = 400


def simulated(ratio: float, seed: int, *, pairs: int = 200, noise: float = 0.03) -> list[Pair]:
    """Return pairs of this true median ratio, on a machine that hiccups: one in ten is ten times as noisy."""
    lot = random.Random(seed)
    times = []
    for _ in range(pairs):
        shift = lot.gauss(0, noise) * (10 if lot.random() < 0.1 else 1)
        machine = 1 + lot.expovariate(1)  # both sides of a pair meet the same machine
        times.append(Pair(100.0 * machine, 100.0 * machine * ratio * math.exp(shift)))
    return times


def verdicts(ratio: float) -> Counter[Verdict]:
    """Return how often each verdict came out at this true ratio."""
    return Counter(decide_speedup(simulated(ratio, trial), THRESHOLD).verdict for trial in range(TRIALS))


@pytest.mark.parametrize("ratio", [1.0, 1.05, 1.1])
def test_a_candidate_4_percent_below_the_cut_never_passes(ratio):
    found = verdicts(ratio)

    assert found[Verdict.PASS] == 0
    assert found[Verdict.FAIL] > 0.98 * TRIALS


@pytest.mark.parametrize("ratio", [1.2, 1.25, 1.5])
def test_a_candidate_at_the_threshold_or_above_never_fails(ratio):
    found = verdicts(ratio)

    assert found[Verdict.FAIL] == 0
    assert found[Verdict.PASS] > 0.98 * TRIALS


def test_at_the_cut_itself_either_verdict_is_as_rare_as_promised():
    found = verdicts(CUT)

    assert found[Verdict.PASS] <= 0.01 * TRIALS + 6  # three standard errors
    assert found[Verdict.FAIL] <= 0.01 * TRIALS + 6
    assert found[Verdict.INCONCLUSIVE] > 0.9 * TRIALS


def test_more_pairs_change_neither_pass_nor_fail():
    pairs = simulated(1.18, 5)
    seen = [decide_speedup(pairs[:count], THRESHOLD) for count in range(len(pairs) + 1)]
    first = next(place for place, decision in enumerate(seen) if decision.is_final)

    assert {decision.verdict for decision in seen[first:]} == {seen[first].verdict}
    assert {decision.pairs for decision in seen[first:]} == {first}
    assert seen[first].e_pass >= 100


def test_a_ratio_above_one_means_that_the_candidate_is_faster():
    decision = decide_speedup([Pair(candidate_us=10.0, baseline_us=20.0)] * 9, THRESHOLD)

    assert decision.verdict is Verdict.PASS
    assert (decision.ratio, decision.ratio_low, decision.ratio_high) == (2.0, 2.0, 2.0)
    assert (decision.pairs, decision.pairs_above, decision.cut) == (9, 9, pytest.approx(CUT))


def test_plain_tuples_from_another_clock_are_pairs_too():
    assert decide_speedup([(20, 10)] * 9, THRESHOLD).verdict is Verdict.FAIL


@pytest.mark.parametrize("count", [0, 1, 8])
def test_too_few_pairs_are_the_fault_of_the_machine(count):
    decision = decide_speedup([(1.0, 9.0)] * count, THRESHOLD)

    assert decision.verdict is Verdict.ENVIRONMENT
    assert f"{count} pairs were measured, and a verdict takes 9" in decision.reason


def test_ratios_that_scatter_and_decide_nothing_are_the_fault_of_the_machine():
    assert decide_speedup(simulated(CUT, 1, pairs=60, noise=0.6), THRESHOLD).verdict is Verdict.ENVIRONMENT


def test_evidence_is_evidence_however_much_the_ratios_scatter():
    assert decide_speedup(simulated(8.0, 1, noise=0.6), THRESHOLD).verdict is Verdict.PASS


def test_neighbours_that_correlate_void_the_evidence():
    waves = [Pair(1.0, 1.3 + 0.2 * math.sin(place / 2)) for place in range(60)]
    level = [Pair(1.0, 1.3 + 0.2 * math.sin(place * place)) for place in range(60)]

    assert decide_speedup(waves, 1.3, guard=0.0).verdict is Verdict.ENVIRONMENT
    assert decide_speedup(level, 1.3, guard=0.0).verdict is not Verdict.ENVIRONMENT


def test_what_the_caller_saw_wrong_with_the_machine_voids_the_evidence():
    decision = decide_speedup([(1.0, 9.0)] * 20, THRESHOLD, problems=["2 other processes compute on the GPU"])

    assert decision.verdict is Verdict.ENVIRONMENT
    assert "2 other processes" in str(decision)
    assert decision.e_pass > 100


def test_a_notebook_shows_what_the_verdict_rests_on():
    shown = repr(decide_speedup([(2.0, 3.0)] * 20, THRESHOLD)).splitlines()

    assert shown[0] == "PASS: 1.50 times as fast, where 1.20 was asked for (9 pairs)."
    assert "1.50 to 1.50 (95%), cut 1.152; 9 of 9 pairs above the cut; evidence 102 for pass" in shown[1]


@pytest.mark.parametrize("count", [0, 1, 20])
def test_a_decision_is_written_as_strict_json(count):
    data = json.loads(json.dumps(decide_speedup([(1.0, 9.0)] * count, THRESHOLD).to_json(), allow_nan=False))

    assert data["verdict"] == ("pass" if count == 20 else "environment")
    assert data["ratio"] == (9.0 if count else None)


@pytest.mark.parametrize(
    "pair", [(0.0, 1.0), (1.0, -1.0), (math.nan, 1.0), (1.0, math.inf), (1.0, "2"), (1.0,), (True, 0), 1.2]
)
def test_a_time_that_is_none_is_refused(pair):
    with pytest.raises(TimingError, match="pair 1; it expects"):
        decide_speedup([(1.0, 1.0), pair], THRESHOLD)


def test_what_is_no_row_of_pairs_is_refused():
    with pytest.raises(TimingError, match=r"got a float as pairs; .* the \.pairs of what compare returns"):
        decide_speedup(1.3, THRESHOLD)


@pytest.mark.parametrize(
    ("threshold", "options", "named"),
    [
        (0.0, {}, "threshold=0.0"),
        (math.nan, {}, "threshold=nan"),
        (1.2, {"alpha": 0.0}, "alpha=0.0"),
        (1.2, {"alpha": 1.0}, "alpha=1.0"),
        (1.2, {"guard": 1.0}, "guard=1.0"),
        (1.2, {"guard": -0.1}, "guard=-0.1"),
    ],
)
def test_settings_that_mean_nothing_are_refused(threshold, options, named):
    with pytest.raises(TimingError, match=named):
        decide_speedup([(1.0, 1.0)], threshold, **options)


def test_deciding_needs_no_torch():
    code = "import sys; from course_lib.timing import decide_speedup; assert 'torch' not in sys.modules"

    subprocess.run([sys.executable, "-c", code], check=True, cwd=__file__.partition("tests")[0])
