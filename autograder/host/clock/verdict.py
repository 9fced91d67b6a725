"""From trials to a verdict: attempts in new processes, a control for the machine, thresholds.

- PASS stands at once, unless another attempt failed; FAIL stands when two of three attempts fail.
- ENVIRONMENT blames the machine, so a control must confirm it: the baseline against itself, in two clean workers. If
  the control is steady, the answer causes the scatter and the verdict is INCONCLUSIVE. So an erratic answer cannot
  have its share left out of the marks.
- A function of a student can disturb about half of the baseline's rounds, which leaves the sign test undecided. On a
  machine whose control is steady, such a ratio fails where all rounds together are clearly below what was asked for.
- INCONCLUSIVE and ENVIRONMENT decide nothing, and cost no points: counted cost decides. Where only the ratio for all
  points is undecided, the points of the passing ratio are certain.
"""

import dataclasses
import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from autograder.host.clock.trial import Trial
from autograder.host.speed import PASSING_SHARE, Thresholds
from course_lib.timing.decisions import (
    ALPHA,
    CORRELATION_ERRORS,
    CORRELATION_LIMIT,
    GUARD,
    NOISE_LIMIT,
    Decision,
    Pair,
    Verdict,
    decide_speedup,
    ratio_noise,
)
from course_lib.timing.sign_test import SignTest
from course_lib.timing.summaries import neighbour_correlation

ATTEMPTS = 3
TO_FAIL = 2
TOO_GOOD = "faster than memory allows"
DISTURBED = "the baseline was slower beside the answer"
OPEN = frozenset((Verdict.INCONCLUSIVE, Verdict.ENVIRONMENT))
DISTURBANCE_LIMIT = 1.25  # largest ratio of the baseline's time beside the answer to its time alone


@dataclass(frozen=True)
class Assessment:
    """The result of all attempts together."""

    passing: Decision  # on the passing ratio
    full: Decision  # on the ratio for all points
    trial: Trial  # the trial that decided
    attempts: int
    flags: tuple[str, ...] = ()  # sentences for the person who reviews it

    @property
    def verdict(self) -> Verdict:
        """Return whether the answer is fast enough to pass."""
        return self.passing.verdict

    @property
    def least(self) -> float:
        """Return the part of the points for speed that is proven to be earned."""
        if self.verdict is not Verdict.PASS:
            return 0.0
        return 1.0 if self.full.verdict is Verdict.PASS else PASSING_SHARE

    @property
    def most(self) -> float:
        """Return the part of the points for speed that is not proven to be missed."""
        if self.verdict is Verdict.FAIL:
            return 0.0
        return PASSING_SHARE if (self.verdict, self.full.verdict) == (Verdict.PASS, Verdict.FAIL) else 1.0

    @property
    def suspicious(self) -> bool:
        """Tell whether the ratio is beyond the roofline, or the baseline was slowed down."""
        return any(flag.startswith((TOO_GOOD, DISTURBED)) for flag in self.flags)


def enough(thresholds: Thresholds) -> Callable[[Sequence[Pair]], bool]:
    """Return a function that tells whether both ratios are decided, so that more pairs change no verdict."""
    tests = [SignTest(cut=t * (1 - GUARD), alpha=ALPHA) for t in (thresholds.passing, thresholds.full)]

    def decided(pairs: Sequence[Pair]) -> bool:
        if len(pairs) == 1:
            tests[:] = [SignTest(cut=test.cut, alpha=ALPHA) for test in tests]
        for test in tests:
            test.add(pairs[-1].ratio)
        return all(test.side for test in tests)

    return decided


def assess(
    attempt: Callable[[], Trial],
    control: Callable[[int], Trial],
    thresholds: Thresholds,
    faults: Callable[[], Sequence[str]] = tuple,
) -> Assessment:
    """Run attempts until both ratios are settled, at most three; each attempt has new processes.

    `control` runs that many pairs of the baseline against itself. `faults` lists known faults of the machine, before
    the first attempt and after the last; with any of them, the ratio decides nothing. Another process on a GPU takes
    turns with both sides, and can make any ratio of times.
    """
    cuts = (thresholds.passing, thresholds.full)
    problems = faults()
    passing: list[Decision] = []
    full: list[Decision] = []
    trials: list[Trial] = []
    for _ in range(ATTEMPTS):
        trials.append(attempt())
        pairs = trials[-1].credited
        mine = [decide_speedup(pairs, cut, problems=problems) for cut in cuts]
        doubtful = OPEN if trials[-1].alone_us else OPEN - {Verdict.INCONCLUSIVE}
        if not problems and any(d.verdict in doubtful for d in mine) and is_steady(control(len(pairs))):
            mine = [_own_doing(d, trials[-1].whole_ratio) for d in mine]
        passing.append(mine[0])
        full.append(mine[1])
        if settled(passing) is not None and settled(full) is not None:
            break
    stands = (_outcome(passing), _outcome(full))
    if not problems and (problems := faults()):
        passed, whole = (decide_speedup(trials[-1].credited, cut, problems=problems) for cut in cuts)
        stands = (passed, whole)
    flags = () if problems else tuple(_flags(*stands, trials, thresholds))  # a disturbed ratio says nothing
    return Assessment(*stands, trials[-1], len(trials), flags)


def settled(decisions: Sequence[Decision]) -> Decision | None:
    """Return the decision that no later attempt can change: the first PASS, or two that agree; else None."""
    passes = [d for d in decisions if d.verdict is Verdict.PASS]
    fails = [d for d in decisions if d.verdict is Verdict.FAIL]
    if len(fails) >= TO_FAIL:
        return fails[-1]
    if passes and (not fails or len(passes) >= TO_FAIL):
        return passes[-1]
    return None


def _outcome(decisions: Sequence[Decision]) -> Decision:
    """Return the decision after all attempts: the settled one, else ENVIRONMENT or INCONCLUSIVE."""
    stands = settled(decisions)
    if stands is not None:
        return stands
    blamed = [d for d in decisions if d.verdict is Verdict.ENVIRONMENT]
    undecided = [d for d in decisions if d.verdict is Verdict.INCONCLUSIVE]
    if blamed and not undecided:
        return blamed[-1]
    last = (undecided or list(decisions))[-1]
    middle = statistics.median(d.ratio for d in decisions)
    reason = f"{middle:.2f} times as fast over {len(decisions)} attempts that do not agree on {last.threshold:.2f}."
    return dataclasses.replace(last, verdict=Verdict.INCONCLUSIVE, ratio=middle, reason=reason)


def _own_doing(decision: Decision, whole_ratio: float) -> Decision:
    """Return the decision for an answer whose own doing the scatter is."""
    if decision.verdict in OPEN and whole_ratio < decision.cut * (1 - GUARD):
        reason = (
            f"{whole_ratio:.2f} times as fast over all rounds together, where {decision.threshold:.2f} was asked for; "
            "beside this answer the times scatter, and the baseline's alone are steady on this machine."
        )
        return dataclasses.replace(decision, verdict=Verdict.FAIL, ratio=whole_ratio, reason=reason)
    if decision.verdict is not Verdict.ENVIRONMENT:
        return decision
    reason = (
        f"{decision.ratio:.2f} times as fast, but the answer's own times scatter too much to say more, "
        "while the baseline's are steady on this machine."
    )
    return dataclasses.replace(decision, verdict=Verdict.INCONCLUSIVE, reason=reason)


def is_steady(control: Trial) -> bool:
    """Tell whether the baseline against itself scatters little, with independent pairs."""
    ratios = [p.ratio for p in control.pairs]
    limit = max(CORRELATION_LIMIT, CORRELATION_ERRORS / math.sqrt(len(ratios)))
    return ratio_noise(ratios) <= NOISE_LIMIT and abs(neighbour_correlation(ratios)) <= limit


def _flags(passing: Decision, full: Decision, trials: Sequence[Trial], thresholds: Thresholds) -> Iterable[str]:
    if passing.ratio > thresholds.too_good:
        yield (
            f"{TOO_GOOD}: {passing.ratio:.2f} times as fast, where moving the bytes alone allows "
            f"{thresholds.ideal_ratio:.2f}; look at the answer before it earns anything"
        )
    slowed = [t.disturbance for t in trials if t.disturbance > DISTURBANCE_LIMIT]
    if 2 * len(slowed) > len(trials):
        yield f"{DISTURBED} than alone, {max(slowed):.2f} times; look at what the answer does between its calls"
    for decision in (passing, full):
        if decision.verdict is Verdict.INCONCLUSIVE:
            yield f"at the boundary: {decision.reason.rstrip('.')}"
