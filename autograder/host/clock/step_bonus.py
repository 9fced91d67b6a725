"""The bonus for the time of a training step: measured on a GPU, beside the points and above their maximum.

Gradebooks have a fixed maximum, so the bonus is a number of its own in the record, and part of no mark. Nothing is lost
without it: where no GPU measures, it is not assessed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from autograder.host.channel import MalformedAnswerError
from autograder.host.checks.training_step import redraw, require_names
from autograder.host.clock.contest import NEEDS_GPU, measure, one_at_a_time, show
from autograder.host.clock.gpu import CUDA, Gpu
from autograder.host.clock.step_contest import StepContest
from autograder.host.clock.trial import WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError, Exercise
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.records import BonusRecord, ExerciseStatus, SpeedRecord
from autograder.host.sandbox import Sandbox
from autograder.host.session import AnswerFailedError
from autograder.host.speed import PASSING_SHARE
from autograder.host.traced import traced
from autograder.protocol import ProtocolError
from course_lib.timing import Verdict

MOST = 10.0
CAP_S = 600.0
"""The longest time until the first step is finished, with empty caches: the pass, a new process, and compilation."""
SECRET = "measured step"  # names the draw of weights and inputs
NOT_RIGHT = "A step is timed if each check of the answer earns points."
NOT_COMPILED = (
    "A step with operators of the answer's own is not timed: their kernels are graded in Triton's interpreter."
)
SHOWN_ONLY = "Shown, not graded: a GPU decides the bonus, since other programs share this CPU."


@dataclass(frozen=True)
class Bonus:
    """The bonus of an answer, and the speed that was measured for it; both None for an exercise without one."""

    record: BonusRecord | None = None
    speed: SpeedRecord | None = None


class TooSlowToBuildError(Exception):
    """The first step took longer than allowed."""


class NotTimedError(Exception):
    """The graph calls operators whose kernels are not compiled here."""


def time_step(
    exercise: Exercise,
    answer: GraphAnswer,
    *,
    sandbox: Sandbox,
    seed: int,
    right: bool,
    cap_s: float = CAP_S,
    gpu: Gpu = CUDA,
    now_s: Callable[[], float] = time.monotonic,
) -> Bonus:
    """Time a training step of the answer's graph, and return its bonus; the answer cannot be called afterwards.

    `right` says that every check earned points. Unrequested bytes from the student's process raise
    `AnswerFailedError`.
    """
    if exercise.step is None:
        return Bonus()
    if not sandbox.measures:
        return _open(NEEDS_GPU)
    if not right:
        return _open(NOT_RIGHT)
    try:
        with one_at_a_time():
            of, first_s = _built(exercise, answer, sandbox, Draw(seed, exercise.id, SECRET), cap_s, gpu, now_s)
        of = replace(of, wall_s=cap_s + exercise.wall_s)
        if not sandbox.has_cuda:
            return Bonus(_none(NEEDS_GPU, first_s, assessed=False), show(of))
        return _measured(of, first_s)
    except NotTimedError:
        return _open(NOT_COMPILED)
    except (CheckFailedError, WrongTimedOutputError, TooSlowToBuildError) as error:
        return Bonus(_none(str(error), assessed=sandbox.has_cuda))
    except AnswerFailedError as error:
        if error.status is ExerciseStatus.MALFORMED_ANSWER:
            raise
        return Bonus(_none(error.message, assessed=sandbox.has_cuda))
    except (MalformedAnswerError, ProtocolError) as error:
        raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None


def _built(
    exercise: Exercise,
    answer: GraphAnswer,
    sandbox: Sandbox,
    draw: Draw,
    cap_s: float,
    gpu: Gpu,
    now_s: Callable[[], float],
) -> tuple[StepContest, float]:
    """Return the contest, and the time until the first step; raises `TooSlowToBuildError` and `NotTimedError`.

    The weights that are timed are not those that the answer saw.
    """
    assert exercise.step is not None, "the caller has asked"
    device = "cuda" if sandbox.has_cuda else "cpu"
    speed = replace(exercise.step.on(device), shown_only=SHOWN_ONLY)
    program = traced(speed.program, draw)
    redraw(program, draw)
    start_s = now_s()
    artifact = answer.transform(program, own=True)
    answer.student.close()
    if artifact.own.declared:
        raise NotTimedError
    require_names(artifact, program)
    redraw(program, draw)
    left_s = cap_s - (now_s() - start_s)
    fresh = artifact.with_tensors(program.tensors)
    of = StepContest(speed, program, sandbox, left_s, draw, artifact=fresh, device=device, gpu=gpu)
    try:
        if left_s > 0:
            of.first_step()
    except AnswerFailedError as error:
        if error.status is not ExerciseStatus.TIMED_OUT:
            raise
        raise TooSlowToBuildError(_too_slow(cap_s)) from None
    if (first_s := now_s() - start_s) > cap_s:
        raise TooSlowToBuildError(_too_slow(cap_s))
    return of, first_s


def _too_slow(cap_s: float) -> str:
    return (
        f"The first training step was not finished within {cap_s:g} s, building and compiling included: make a graph "
        "that is built sooner."
    )


def _measured(of: StepContest, first_s: float) -> Bonus:
    record, found = measure(of)
    if found.verdict is Verdict.ENVIRONMENT:
        return Bonus(_none(f"The bonus was {record.reason}", first_s, assessed=False), record)
    asked = of.thresholds
    points = round(MOST * found.least, 6)
    earns = f"{asked.passing:.3g} times as fast earns {MOST * PASSING_SHARE:g}, {asked.full:.3g} earns {MOST:g}."
    return Bonus(BonusRecord(points, MOST, True, earns, first_s), record)


def _open(reason: str) -> Bonus:
    return Bonus(_none(reason, assessed=False))


def _none(reason: str, first_s: float = 0.0, *, assessed: bool) -> BonusRecord:
    return BonusRecord(0.0, MOST, assessed, reason, first_s)
