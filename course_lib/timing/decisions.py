"""Decide on a speedup from pairs of times: fast enough, not fast enough, or not known.

**The cut** is threshold × (1 − guard). A program that is exactly as fast as requested lies on the threshold, where any
rule decides at random. The cut is a little lower, so this program passes.

**The rule** is a sign test by e-values, which may be evaluated after every pair: `course_lib.timing.sign_test`
derives it and names its sources. The verdict is PASS as soon as the evidence that ratios lie above the cut reaches
1 / alpha. It is FAIL as soon as the evidence that they lie below does. The first verdict is final; later pairs are
ignored.

**What it guarantees.** Assume that each sign, given those before it, is positive or negative with equal probability
at the cut. Then a PASS has probability at most alpha if the true median ratio is at the cut or below. A FAIL has
probability at most alpha if it is at the cut or above. This holds after any number of evaluations.

**What it does not cover** is noise that slows one side more than the other. For example, another process that filled
the memory bus moved the ratio of a memory-bound to a compute-bound program by 8 %. The limits of noise and correlation
are choices, not results.

The module uses only the standard library and measures nothing: a judge applies the same rule to times from its own
clock.
"""

import dataclasses
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from course_lib.errors import TimingError
from course_lib.timing.sign_test import SignTest, least_pairs
from course_lib.timing.summaries import median_interval, neighbour_correlation, spread

ALPHA = 0.01  # the chance of a wrong PASS, and of a wrong FAIL
GUARD = 0.04  # how far below the threshold the cut lies, as a fraction
NOISE_LIMIT = 0.25  # the largest spread of ratios in an undecided comparison; above it, the machine is too noisy
CORRELATION_LIMIT = 0.3  # of neighbouring ratios; dependent signs invalidate the error rates
CORRELATION_ERRORS = 3.0  # a correlation counts only above this many standard errors
CONFIDENCE = 0.95  # of the interval that is shown; the verdict does not use it


class Verdict(StrEnum):
    """Name the verdict on a comparison."""

    PASS = "pass"  # the candidate is fast enough
    FAIL = "fail"  # it is not
    INCONCLUSIVE = "inconclusive"  # too close to the cut for these pairs to say
    ENVIRONMENT = "environment"  # the machine did not allow a verdict: repeat the comparison


class Pair(NamedTuple):
    """Hold the times of both sides, measured one right after the other."""

    candidate_us: float
    baseline_us: float

    @property
    def ratio(self) -> float:
        """Return how many times as fast the candidate was; above 1, the candidate was faster."""
        return self.baseline_us / self.candidate_us


@dataclass(frozen=True)
class Decision:
    """Hold a verdict and its evidence. All numbers describe the pairs up to the deciding one."""

    verdict: Verdict
    reason: str  # one sentence for the student
    ratio: float  # median of the pair ratios; above 1, the candidate is faster; NaN without pairs
    ratio_low: float  # the interval that holds the true median
    ratio_high: float
    confidence: float  # of that interval, for a single evaluation
    threshold: float  # the speedup that was asked for
    cut: float  # threshold × (1 − guard): what the ratios are compared with
    alpha: float  # the chance of a wrong PASS, and of a wrong FAIL
    pairs: int
    pairs_above: int  # pairs with a ratio above the cut
    e_pass: float  # evidence that the ratio is above the cut; 1 / alpha is enough
    e_fail: float  # evidence that it is below
    noise: float  # spread of the ratios around their median, as a fraction
    correlation: float  # of neighbouring ratios
    problems: tuple[str, ...] = ()  # problems of the machine that the caller reported

    @property
    def is_final(self) -> bool:
        """Tell whether more pairs would not change the verdict."""
        return self.verdict in (Verdict.PASS, Verdict.FAIL)

    def to_json(self) -> dict[str, Any]:
        """Return all fields as plain data; an undefined ratio or bound becomes None."""
        plain = dataclasses.asdict(self) | {"verdict": str(self.verdict), "problems": list(self.problems)}
        return {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in plain.items()}

    def __str__(self) -> str:
        return f"{self.verdict.upper()}: {self.reason}"

    def __repr__(self) -> str:
        """Return the text for a notebook: the sentence and the evidence."""
        where = (
            f"true ratio in {self.ratio_low:.2f} to {self.ratio_high:.2f} ({self.confidence:.0%}), cut {self.cut:.3f}"
        )
        signs = f"{self.pairs_above} of {self.pairs} pairs above the cut"
        evidence = f"evidence {self.e_pass:.3g} for pass, {self.e_fail:.3g} for fail, {1 / self.alpha:.0f} decides"
        return f"{self}\n{where}; {signs}; {evidence}; noise {self.noise:.1%}"


def decide_speedup(
    pairs: Iterable[tuple[float, float]],
    threshold: float,
    *,
    alpha: float = ALPHA,
    guard: float = GUARD,
    problems: Sequence[str] = (),
) -> Decision:
    """Decide whether a candidate is at least `threshold` times as fast as a baseline.

        >>> print(decide_speedup([Pair(candidate_us=100.0, baseline_us=150.0)] * 20, 1.2))
        PASS: 1.50 times as fast, where 1.20 was asked for (9 pairs).

    `pairs` are (candidate, baseline) times in the order in which they were taken, in any one unit; see `compare`.
    Their ratios, baseline / candidate, are compared with threshold × (1 − guard) by a sequential sign test (Ville
    1939; sources and guarantees in the docstrings of this module and of `course_lib.timing.sign_test`). A wrong PASS
    and a wrong FAIL have probability at most `alpha` each, however often the test is evaluated. More pairs do not
    change PASS or FAIL.

    The verdict is INCONCLUSIVE if the pairs end before either. Whatever the evidence, it is ENVIRONMENT if there are
    `problems`, or if neighbouring ratios correlate. Without enough evidence, it is also ENVIRONMENT if the ratios
    scatter by more than 25 %, or are too few for any verdict (9 are needed for alpha = 0.01). Raises `TimingError` for
    times that are not positive and finite, and for invalid settings.
    """
    _check_settings(pairs, threshold, alpha, guard)
    test, ratios = SignTest(cut=threshold * (1 - guard), alpha=alpha), []
    for place, pair in enumerate(pairs):
        ratios.append(_ratio(pair, place))
        test.add(ratios[-1])
        if test.side:
            break
    undecided = _undecided(test, ratios, threshold, alpha, tuple(problems))
    verdict, reason = _verdict(undecided, test.side)
    return dataclasses.replace(undecided, verdict=verdict, reason=reason)


def _undecided(
    test: SignTest, ratios: Sequence[float], threshold: float, alpha: float, problems: tuple[str, ...]
) -> Decision:
    """Return everything about the ratios except what follows from it."""
    low, high = median_interval(ratios, CONFIDENCE)
    return Decision(
        verdict=Verdict.INCONCLUSIVE,
        reason="",
        ratio=statistics.median(ratios) if ratios else math.nan,
        ratio_low=max(low, 0.0),
        ratio_high=high,
        confidence=CONFIDENCE,
        threshold=threshold,
        cut=test.cut,
        alpha=alpha,
        pairs=len(ratios),
        pairs_above=sum(ratio > test.cut for ratio in ratios),
        e_pass=test.e_above,
        e_fail=test.e_below,
        noise=ratio_noise(ratios),
        correlation=neighbour_correlation(ratios),
        problems=problems,
    )


def _verdict(seen: Decision, side: int) -> tuple[Verdict, str]:
    """Return the verdict with its reason: check problems first, then the evidence, then why evidence is missing."""
    asked = f"where {seen.threshold:.2f} was asked for"
    limit = max(CORRELATION_LIMIT, CORRELATION_ERRORS / math.sqrt(max(seen.pairs, 1)))
    if seen.problems:
        return Verdict.ENVIRONMENT, f"not judged, because of the machine: {'; '.join(seen.problems)}."
    if abs(seen.correlation) > limit:
        told = f"neighbouring ratios correlate ({seen.correlation:+.2f}), so each proves little"
        return Verdict.ENVIRONMENT, f"not judged: {told}; measure again on a quieter machine."
    if side:
        found = f"{seen.ratio:.2f} times as fast, {asked} ({seen.pairs} pairs)."
        return (Verdict.PASS if side > 0 else Verdict.FAIL), found
    if seen.pairs < least_pairs(seen.alpha):
        needed = f"a verdict takes {least_pairs(seen.alpha)}"
        return Verdict.ENVIRONMENT, f"not judged: {seen.pairs} pairs were measured, and {needed}."
    if seen.noise > NOISE_LIMIT:
        told = f"ratios scatter by {seen.noise:.0%}"
        return Verdict.ENVIRONMENT, f"not judged: {told}; measure again on a quieter machine."
    return Verdict.INCONCLUSIVE, f"{seen.ratio:.2f} times as fast after {seen.pairs} pairs, too close to call {asked}."


def ratio_noise(ratios: Sequence[float]) -> float:
    """Return the spread of ratios on a logarithmic scale, where factors of 2 and 1/2 are equally far from 1."""
    return spread([math.log(ratio) for ratio in ratios]) if ratios else 0.0


def _ratio(pair: object, place: int) -> float:
    times = tuple(pair) if isinstance(pair, Sequence) else ()
    if len(times) != 2 or not all(isinstance(t, (int, float)) and math.isfinite(t) and t > 0 for t in times):
        raise TimingError(
            f"decide_speedup got {pair!r} as pair {place}; it expects (candidate, baseline), two positive finite times."
        )
    return Pair(*times).ratio


def _check_settings(pairs: object, threshold: float, alpha: float, guard: float) -> None:
    if not isinstance(pairs, Iterable):
        raise TimingError(
            f"decide_speedup got a {type(pairs).__name__} as pairs; it expects (candidate, baseline) times, "
            "such as the .pairs of what compare returns."
        )
    if not (math.isfinite(threshold) and threshold > 0):
        raise TimingError(f"decide_speedup got threshold={threshold}; it expects a ratio above 0, such as 1.2.")
    if not 0 < alpha < 0.5:
        raise TimingError(f"decide_speedup got alpha={alpha}; it expects an error rate above 0 and below 0.5.")
    if not 0 <= guard < 1:
        raise TimingError(f"decide_speedup got guard={guard}; it expects a fraction of the threshold, such as 0.04.")
