"""A trial: time an answer against its baseline, in pairs of rounds on random inputs, and verify every output.

In a pair, both sides work on the same new inputs, one after the other, in random order. The size of a round depends on
the baseline alone, so an answer that is slow during warm-up changes nothing. On a machine where the baseline's rounds
scatter, a pair holds several rounds of either side. The quickest counts, since another program may have interrupted the
others.
"""

import math
import random
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import torch

from autograder.host.clock.memory import Problem
from autograder.host.clock.real_time import real_time_priority
from autograder.host.clock.side import Side, Window, net_us, problems_for
from autograder.host.session import AnswerFailedError
from autograder.protocol.requests.loads import Cost
from course_lib.timing.decisions import ALPHA, Pair, ratio_noise
from course_lib.timing.sign_test import least_pairs
from course_lib.verify.error_rule import ROUNDINGS, deviation

WINDOW_US = 2_000.0  # least time of a baseline's round, long compared with scheduling and messages
MOST_PROBLEMS = 1024
WARM_UPS = 3
SIZINGS, ENOUGH = 3, 1.25  # a short round is mostly its own cost, so a problem seems to take longer than in a long one
LEAST_PAIRS = least_pairs(ALPHA)
ALONE = 5  # groups of baseline rounds, before an answer is loaded and after it has ended
STEADY = 0.1  # spread of the baseline's rounds up to which one round a side makes a pair
MOST_EMPTY = 0.3  # largest accepted cost of an empty round, as a part of a quick baseline round
SLOWED = 1.05  # a larger ratio of the baseline's time beside an answer to its time alone is not noise
TRIES = 5  # rounds a side on a less steady machine; the quickest counts


class WrongTimedOutputError(Exception):
    """A timed round gave outputs that are wrong, or that changed after the reply; the message is for the student."""


@dataclass(frozen=True)
class Job:
    """The work of both sides: `draw` makes one problem's inputs, `reference` its outputs in the inputs' dtype.

    A training step has `draws`, which makes a seed; `reference` takes it too. In the timed rounds dropout is random, so
    the loss and the gradients are verified in a round that follows, with the masks of the seed.
    """

    draw: Callable[[], Problem]
    reference: Callable[..., Problem]
    most_bytes: int = 64 << 20  # for a round's inputs and outputs together
    draws: Callable[[], int] | None = None


@dataclass(frozen=True)
class Plan:
    """When a trial ends: as soon as `enough` is true, after `max_pairs`, or after `budget_s`.

    `tries` is the number of rounds a side in each pair, 0 for as many as the machine needs.
    """

    max_pairs: int = 200
    budget_s: float = 20.0
    window_us: float = WINDOW_US
    tries: int = 0
    enough: Callable[[Sequence[Pair]], bool] = lambda pairs: False


@dataclass
class Trial:
    """The paired timings of one trial, in microseconds per round, without the cost of an empty round."""

    problems: int  # in a round
    pairs: list[Pair] = field(default_factory=list)
    empty_us: float = 0.0
    tries: int = 1  # rounds of either side in a pair; the quickest counts
    bare_us: float = 0.0  # of an empty round without copied outputs, for an answer that writes into the shared memory
    undisturbed: bool = False  # whether the trial ran in real-time priority
    alone_us: float = 0.0  # a baseline round while no student code runs: the slower of before and after
    answer_cost: Cost | None = None  # of one problem; None for a student's function, which only its worker could count
    baseline_cost: Cost | None = None
    replays: int = 1  # of each problem in a round

    @property
    def calls(self) -> int:
        """Return how often a round computes a problem."""
        return self.problems * self.replays

    @property
    def ratio(self) -> float:
        """Return the median of the pairs' ratios."""
        return statistics.median(p.ratio for p in self.pairs)

    @property
    def answer_us(self) -> float:
        """Return the answer's median time of one problem."""
        return statistics.median(p.candidate_us for p in self.pairs) / self.calls

    @property
    def baseline_us(self) -> float:
        """Return the baseline's median time of one problem."""
        return statistics.median(p.baseline_us for p in self.pairs) / self.calls

    @property
    def disturbance(self) -> float:
        """Return the baseline's time beside the answer over its time alone; 1 where that was not measured."""
        return self.baseline_us * self.calls / self.alone_us if self.alone_us else 1.0

    @property
    def credited(self) -> list[Pair]:
        """Return the pairs for a verdict: if the answer slowed the baseline, the baseline's times are those alone."""
        slowed = self.disturbance if self.disturbance > SLOWED else 1.0
        return [Pair(p.candidate_us, p.baseline_us / slowed) for p in self.pairs]

    @property
    def whole_ratio(self) -> float:
        """Return the baseline's time alone over the mean time of the answer, whose every round counts; else infinity.

        An answer can make its own times scatter, and those of the baseline beside it, but neither raises this ratio.
        """
        return self.alone_us / statistics.mean(p.candidate_us for p in self.pairs) if self.alone_us else math.inf


def run_trial(candidate: Side, baseline: Side, job: Job, plan: Plan) -> Trial:
    """Time pairs until the plan is fulfilled, at least as many as a verdict needs.

    Raise `WrongTimedOutputError`, and the errors of either side's session. A slow answer does not get fewer pairs, so
    it may exceed the time limit of its session.
    """
    _replay_where_both_can(candidate, baseline)
    with real_time_priority() as priority:
        priority.add(baseline.session.worker_pid)
        trial = _calibrated(candidate, baseline, job, plan)
        if priority.raised:
            priority.add(candidate.session.worker_pid)
        trial.undisturbed = bool(priority.raised)
        _take_pairs(trial, candidate, baseline, job, plan)
        if not candidate.is_clean:
            candidate.close()
            trial.alone_us = max(trial.alone_us, _alone_us(trial, baseline, job))
    return trial


def _replay_where_both_can(candidate: Side, baseline: Side) -> None:
    """Let both sides replay their rounds from CUDA graphs, or neither: only then is a ratio one of the same work."""
    sides = (baseline, candidate)
    most = min(side.most_replays for side in sides)
    both = most > 0 and all(side.can_replay() for side in sides)
    for side in sides:
        side.replays = most if both else 0


def can_be_timed(control: Callable[[int], Trial]) -> bool:
    """Return whether `control`, which times the baseline against itself, ends; else the machine is too small for it."""
    try:
        control(LEAST_PAIRS)
    except AnswerFailedError:
        return False
    return True


def _calibrated(candidate: Side, baseline: Side, job: Job, plan: Plan) -> Trial:
    """Return a trial without pairs, with all values that follow from the baseline before the answer runs."""
    trial = Trial(_size(baseline, job, plan.window_us), replays=max(baseline.replays, 1))
    baseline.open(trial.problems)
    needed, usual_us = _usual(trial, baseline, job)
    trial.tries = plan.tries or needed
    # A value that is too high would show a speedup that does not exist; one too low only moves ratios towards 1.
    most_us = MOST_EMPTY * usual_us
    trial.empty_us = trial.bare_us = min(baseline.empty_us(_drawn(job, trial)), most_us)
    if candidate.into:
        trial.bare_us = min(baseline.empty_us(_drawn(job, trial), bare=True), trial.empty_us)
    if not candidate.is_clean:
        trial.alone_us = _alone_us(trial, baseline, job)
    return trial


def _take_pairs(trial: Trial, candidate: Side, baseline: Side, job: Job, plan: Plan) -> None:
    candidate.open(trial.problems)
    for _ in range(WARM_UPS):
        _pair(candidate, baseline, job, trial, once=True)
    end_s = time.monotonic() + plan.budget_s
    while len(trial.pairs) < LEAST_PAIRS or (len(trial.pairs) < plan.max_pairs and time.monotonic() < end_s):
        trial.pairs.append(_pair(candidate, baseline, job, trial))
        if plan.enough(trial.pairs):
            break


def _alone_us(trial: Trial, baseline: Side, job: Job) -> float:
    """Return the median of baseline rounds while no answer is alive; of each group the quickest counts."""
    groups = [[baseline.window(_drawn(job, trial)).time_us for _ in range(trial.tries)] for _ in range(ALONE)]
    return net_us(statistics.median(min(group) for group in groups), trial.empty_us)


def _usual(trial: Trial, baseline: Side, job: Job) -> tuple[int, float]:
    """Return how many rounds a pair needs on this machine now, and the time of a quick baseline round."""
    times_us = [baseline.window(_drawn(job, trial)).time_us for _ in range(LEAST_PAIRS)]
    return (1 if ratio_noise(times_us) <= STEADY else TRIES), min(times_us)


def _drawn(job: Job, trial: Trial) -> list[Problem]:
    return [job.draw() for _ in range(trial.problems)]


def _size(baseline: Side, job: Job, window_us: float) -> int:
    """Return how many problems make a baseline round long enough."""
    bytes_each = sum(t.nbytes for t in (*job.draw(), *baseline.forms))
    most = max(1, min(MOST_PROBLEMS, job.most_bytes // max(bytes_each, 1)))
    count = 1
    for _ in range(SIZINGS):
        needed = problems_for(window_us, _one_us(baseline, job, count), most)
        if needed <= ENOUGH * count:
            break
        count = needed
    return count


def _one_us(baseline: Side, job: Job, count: int) -> float:
    """Return the time of one problem in a quick round of `count`."""
    baseline.open(count)
    problems = [job.draw() for _ in range(count)]
    times_us = [baseline.window(problems).time_us for _ in range(2 * WARM_UPS)][WARM_UPS:]
    return net_us(min(times_us), baseline.empty_us(problems)) / (count * max(baseline.replays, 1))


def _pair(candidate: Side, baseline: Side, job: Job, trial: Trial, *, once: bool = False) -> Pair:
    """Run rounds of both sides in turn, each on new inputs, until each side had its tries.

    With `once`, a captured round is replayed once. Replays have the same inputs, and a graph that keeps a state could
    do a part of the work in each. Its operators do the same in every replay, so one replay that is right shows that
    each does all of it.
    """
    times_us: dict[int, list[float]] = {id(candidate): [], id(baseline): []}
    for _ in range(trial.tries):
        problems = _drawn(job, trial)
        sides = [candidate, baseline]
        if random.SystemRandom().random() < 0.5:
            sides.reverse()
        windows = {id(side): side.window(problems, once=once) for side in sides}
        _verify(problems, windows[id(candidate)], candidate, job)
        for side, window in windows.items():
            times_us[side].append(window.time_us)
    return Pair(
        net_us(min(times_us[id(candidate)]), trial.bare_us), net_us(min(times_us[id(baseline)]), trial.empty_us)
    )


def _verify(problems: Sequence[Problem], window: Window, candidate: Side, job: Job) -> None:
    if job.draws is None:
        _require_all_right(problems, window, job)
        return
    _require_well_behaved(window)
    seed = job.draws()
    masked = replace(job, reference=partial(job.reference, draws=seed))
    _require_all_right(problems, candidate.window(problems, draws=seed), masked)


def _require_well_behaved(window: Window) -> None:
    if window.wrote_late:
        raise WrongTimedOutputError(
            "In a timed call the output was still being written after the function had returned; "
            "finish all work, also that of threads and streams, before returning."
        )
    if window.wrote_inputs:
        raise WrongTimedOutputError(
            "In a timed call the function wrote into its inputs; use out-of-place operators (add, not add_)."
        )


def _require_all_right(problems: Sequence[Problem], window: Window, job: Job) -> None:
    _require_well_behaved(window)
    for problem, outputs in zip(problems, window.outputs, strict=True):
        _require_right(problem, outputs, job)


def _require_right(problem: Problem, outputs: Problem, job: Job) -> None:
    """Check timed outputs by the rule of the checks; skip eager PyTorch's own error where outputs are far within it."""
    truths = job.reference(tuple(t.double() if t.is_floating_point() else t for t in problem))
    eagers: Problem | None = None
    gradients = [float(truth.abs().max()) for truth in truths[1:]] if job.draws is not None else []
    for i, (actual, truth) in enumerate(zip(outputs, truths, strict=True)):
        magnitude = max(gradients) if i and gradients else 0.0  # one gradient alone may consist of rounding errors
        if _well_within(actual, truth, magnitude):
            continue
        eagers = eagers or job.reference(problem)
        found = deviation(actual, truth, eagers[i], magnitude=magnitude)
        if not found.within_bound:
            raise WrongTimedOutputError(
                f"In a timed call the output is {found}: each timed call has fresh inputs, "
                "and its result has to be right as well."
            )


def _well_within(actual: torch.Tensor, truth: torch.Tensor, magnitude: float) -> bool:
    if not actual.is_floating_point() or not actual.numel():
        return False
    largest = max(magnitude, float(truth.abs().max()))
    error = float((actual.double() - truth).abs_().max())  # NaN fails the comparison below
    return error <= ROUNDINGS.get(actual.dtype, 4.0) * torch.finfo(actual.dtype).eps * largest < float("inf")
