"""Measure the speed of one exercise's answer against its baseline, and record the result."""

import contextlib
import copy
import dataclasses
import functools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._subclasses import FakeTensorMode

from autograder.host import shared_inputs
from autograder.host.artifacts import Artifact
from autograder.host.clock.gpu import CUDA, Gpu
from autograder.host.clock.memory import DeviceMemory, HostMemory, Memory, Problem
from autograder.host.clock.side import REPLAYS, Side
from autograder.host.clock.trial import Job, Plan, Trial, run_trial
from autograder.host.clock.verdict import Assessment, assess, enough
from autograder.host.compute_lock import compute_lock
from autograder.host.draw import Draw
from autograder.host.kinds.callable import as_tuple
from autograder.host.posix import fcntl
from autograder.host.records import CountedCost, SpeedRecord, SpeedVerdict
from autograder.host.sandbox import Sandbox
from autograder.host.session import Session
from autograder.host.speed import Speed, Thresholds
from autograder.host.traced import Traced, traced
from autograder.protocol.requests.answers import InputForm
from autograder.protocol.requests.loads import Cost, LoadGraph
from course_lib.timing.decisions import CONFIDENCE, Decision, decide_speedup
from course_lib.timing.environment import lasting_problems
from course_lib.timing.summaries import median_interval

SHARE_OF_DEVICE = 16  # free memory over memory of one round; both sides, private copies and fp64 need the rest
SHOWN = Plan(max_pairs=15, budget_s=0.3, window_us=600.0, tries=1)
"""The plan for a CPU, where the ratio is shown and earns no points: a quick interval instead of a verdict."""
SCATTERED = 0.3  # width of that interval, as a part of the ratio, beyond which other programs disturb the times
SHOWN_AGAIN = Plan(max_pairs=40, budget_s=2.0, window_us=600.0, tries=3)
"""The plan for a second, longer trial on a disturbed machine."""
GRADED = Plan(budget_s=2.5)
"""The plan of an attempt, so that three of them take few seconds. More pairs would only settle ratios near a cut, and
an undecided verdict costs no points."""
CPU_TRIES = 3  # rounds a side in each pair: a CPU that was steady in calibration may be disturbed right after it
TWIN_EVERY = 4  # one in so many problems, drawn, is a twin
TWIN_STRETCH = 64  # of whose elements one in so many differs
NEEDS_GPU = "It is measured where answers compute on a GPU."
SHOWN_ONLY = "Shown, not graded: the counted cost earns the points, since other programs share this CPU."


@dataclass(frozen=True)
class Contest:
    """An answer and its baseline, ready to be timed as often as needed.

    `artifact` is a graph that the host rebuilt. It is None where the student's own function is called: then `student`
    makes a session for it.
    """

    speed: Speed
    program: Traced
    sandbox: Sandbox
    wall_s: float
    draw: Draw
    artifact: Artifact | None = None
    student: Callable[[], Session] | None = None
    device: str = "cpu"
    gpu: Gpu = CUDA

    def trial(self, plan: Plan) -> Trial:
        """Run one trial in new processes."""
        with contextlib.closing(self._candidate()) as candidate, contextlib.closing(self._baseline()) as baseline:
            trial = run_trial(candidate, baseline, self.job(), plan)
            if self.artifact is not None:
                trial.answer_cost, trial.baseline_cost = self._cost(candidate), self._cost(baseline)
            return trial

    def control(self, pairs: int) -> Trial:
        """Time the baseline against itself, in two new processes."""
        with contextlib.closing(self._baseline()) as first, contextlib.closing(self._baseline()) as second:
            return run_trial(first, second, self.job(), Plan(max_pairs=pairs))

    def job(self) -> Job:
        """Return the work of both sides: inputs from a secret seed, and the program itself as the reference.

        Some inputs are twins of those before, as `twin` says. All outputs are verified, those of twins too.
        """
        device = "cpu" if self.device == "cpu" else self.gpu.tensors
        generator = torch.Generator(device).manual_seed(self.draw.integer(0, 2**63 - 1))
        program = dataclasses.replace(self.program, module=copy.deepcopy(self.program.module).to(device))

        before: list[torch.Tensor] = []

        def draw() -> Problem:
            inputs = tuple(torch.empty(s.shape, dtype=s.dtype, device=device) for s in self._inputs)
            for each in inputs:
                each.normal_(generator=generator)
                if self.speed.drawn is not None:
                    self.speed.drawn(each)
            if before and self.draw.integer(0, TWIN_EVERY - 1) == 0:
                inputs = tuple(twin(*each, self.draw) for each in zip(before, inputs, strict=True))
            before[:] = inputs
            return inputs

        job = self._job(draw, program)
        if self.device == "cpu":
            return job
        return dataclasses.replace(job, most_bytes=self.gpu.free_bytes() // SHARE_OF_DEVICE)

    def _job(self, draw: Callable[[], Problem], program: Traced) -> Job:
        def reference(problem: Problem) -> Problem:
            return tuple(t.detach() for t in as_tuple(program.reference(*problem)))

        return Job(draw, reference)

    def _cost(self, side: Side) -> Cost | None:
        return side.cost([InputForm(s.shape, str(s.dtype).removeprefix("torch.")) for s in self._inputs])

    @property
    def _inputs(self) -> Any:
        return self.program.program.inputs

    def _baseline(self) -> Side:
        return self._of_graph(Artifact(self.program.graph, self.program.tensors), is_baseline=True)

    def _candidate(self) -> Side:
        if self.artifact is not None:
            return self._of_graph(self.artifact)
        assert self.student is not None, "either a graph or a student's function"
        session, into = self.student(), self.speed.into
        return Side(
            session, self._forms, into=into, is_strict=True, is_clean=False, memory=self._memory, most_replays=0
        )

    def _of_graph(self, artifact: Artifact, *, is_baseline: bool = False) -> Side:
        load = self._load(artifact)
        tensors = [shared_inputs.to_raw(t) for t in artifact.tensors.values()]
        session = Session(self.sandbox, load, tensors, wall_s=self.wall_s)
        is_strict = self.student is not None
        return Side(
            session,
            self._forms,
            is_strict=is_strict,
            is_baseline=is_baseline,
            memory=self._memory,
            most_replays=0 if is_strict else REPLAYS,  # like the other side, also where it is the baseline itself
        )

    def _load(self, artifact: Artifact) -> LoadGraph:
        return LoadGraph(artifact.graph, tuple(artifact.tensors), training=False)

    def _memory(self, forms: Sequence[torch.Tensor]) -> Memory:
        if self.device == "cpu":
            return HostMemory(forms)
        problems = len(forms) // len(self._forms)
        of_inputs = [torch.empty(s.shape, dtype=s.dtype, device="meta") for s in self._inputs]
        return DeviceMemory(forms, of_inputs * problems, self.gpu)

    @functools.cached_property
    def _forms(self) -> list[torch.Tensor]:
        """Shapes and dtypes of one problem's outputs, from fake tensors: nothing is computed."""
        with FakeTensorMode(allow_non_fake_inputs=True):
            problem = [torch.empty(s.shape, dtype=s.dtype) for s in self._inputs]
            outputs = as_tuple(self.program.reference(*problem))
        return [torch.empty(t.shape, dtype=t.dtype, device="meta") for t in outputs]

    @property
    def thresholds(self) -> Thresholds:
        """Return the required ratios."""
        return self.speed.thresholds(self.device, rebuilt=self.artifact is not None)


def contest(speed: Speed, draw: Draw, sandbox: Sandbox, wall_s: float, **answer: Any) -> Contest:
    """Return a contest over the exercise's program, with parameters of this grading."""
    return Contest(speed, traced(speed.program, draw), sandbox, wall_s, draw, **answer)


def twin(before: torch.Tensor, fresh: torch.Tensor, draw: Draw) -> torch.Tensor:
    """Return `before` with the values of `fresh` in a drawn stretch.

    An answer that knows its inputs by some of their elements gives the output of `before` for it, which is wrong.
    """
    made, count = before.clone(), max(fresh.numel() // TWIN_STRETCH, 1)
    first = draw.integer(0, max(fresh.numel() - count, 0))
    made.view(-1)[first : first + count] = fresh.view(-1)[first : first + count]
    return made


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Wait until no other grading of this installation measures; the lock is on this file and ends with its process.

    Whoever waits releases the compute lock, which the one that measures needs.
    """
    descriptor = os.open(__file__, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with compute_lock.released():
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def measure(of: Contest) -> tuple[SpeedRecord, Assessment]:
    """Judge the speed by the rules in `verdict`; return the record, and what was proven."""
    thresholds = of.thresholds
    plan = dataclasses.replace(GRADED, enough=enough(thresholds), tries=CPU_TRIES if of.device == "cpu" else 0)
    with one_at_a_time():
        faults = functools.partial(problems, of.device, of.gpu)
        result = assess(lambda: of.trial(plan), of.control, thresholds, faults)
    verdict = SpeedVerdict(str(result.verdict))
    return _record(of, result.passing, result.trial, verdict, result.attempts, result.flags), result


def problems(device: str, gpu: Gpu = CUDA) -> tuple[str, ...]:
    """Return the known faults of the GPU while no worker of a contest uses it."""
    if device == "cpu":
        return ()
    found = lasting_problems(gpu.stay_busy)
    gpu.synchronize()  # the contest must not begin beside the work that was queued
    return found


def show(of: Contest) -> SpeedRecord:
    """Measure a ratio and its interval to show to the student; it earns nothing.

    Where the times scatter much, they are measured once more, for longer. The width of the interval decides this, and
    not the ratio, so this favours neither side.
    """
    trial = of.trial(SHOWN)
    low, high = median_interval([p.ratio for p in trial.pairs], CONFIDENCE)
    if not high - low <= SCATTERED * trial.ratio:
        trial = of.trial(SHOWN_AGAIN)
    decision = decide_speedup(trial.pairs, of.thresholds.passing)
    return _record(of, decision, trial, SpeedVerdict.SHOWN, 1, ())


def _record(
    of: Contest, decision: Decision, trial: Trial, verdict: SpeedVerdict, attempts: int, flags: tuple[str, ...]
) -> SpeedRecord:
    low, high = median_interval([p.ratio for p in trial.pairs], CONFIDENCE)
    shown = verdict is SpeedVerdict.SHOWN
    return SpeedRecord(
        verdict=verdict,
        reason=(of.speed.shown_only or SHOWN_ONLY) if shown else decision.reason,
        ratio=trial.ratio if shown else decision.ratio,
        ratio_low=low if shown else decision.ratio_low,
        ratio_high=high if shown else decision.ratio_high,
        pairs=len(trial.pairs) if shown else decision.pairs,
        attempts=attempts,
        answer_us=trial.answer_us,
        baseline_us=trial.baseline_us,
        passing=0.0 if of.speed.shown_only else of.thresholds.passing,
        full=0.0 if of.speed.shown_only else of.thresholds.full,
        ideal=of.speed.ideal_ratio,
        device=of.device,
        flags=flags,
        answer_cost=_counted(trial.answer_cost),
        baseline_cost=_counted(trial.baseline_cost),
    )


def _counted(cost: Cost | None) -> CountedCost | None:
    return None if cost is None else CountedCost(cost.launches, cost.bytes_read + cost.bytes_written)
