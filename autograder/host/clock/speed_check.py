"""The judge's last step: decide the points for speed, by the measured ratio or by counted cost.

The checks with `speed=True` have counted. Where the grading device measures, an answer that gave right results is
timed, and the verdict replaces what they earned. Where the verdict is undecided, the machine disturbed, or nothing
measured, the counted cost stands. So the maximum is the same on every machine, and no noise costs points.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

from autograder.host.channel import MalformedAnswerError
from autograder.host.clock.contest import Contest, measure, show
from autograder.host.clock.timed_graph import timed_graph
from autograder.host.clock.trial import WrongTimedOutputError, can_be_timed
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.records import CheckRecord, CheckStatus, EarnedBy, ExerciseStatus, SpeedRecord
from autograder.host.sandbox import Sandbox
from autograder.host.session import AnswerFailedError, Session
from autograder.host.traced import traced
from autograder.protocol import ProtocolError
from autograder.protocol.requests.loads import LoadAnswer
from course_lib.timing import Verdict

SECRET = "measured speed"  # names the draw of inputs
AS_COSTLY = "The ratio is undecided, and the graph that was timed launches and moves as much as the program itself."
REVIEW = "The share stays open until a person has looked at the answer."


@dataclass(frozen=True)
class Timed:
    """What measuring decided: the points for speed lie from `least` to `most`, and counted cost decides in between."""

    record: SpeedRecord | None = None
    least: float = 0.0
    most: float = 1.0
    said: str = ""  # why the points are not all earned, for the student

    def decided(self, check: Check, counted: CheckRecord) -> CheckRecord:
        """Return the record of a check after measuring; only a check for speed changes."""
        if not check.speed:
            return counted
        share = counted.points / check.points if check.points else 0.0
        final = min(max(share, self.least), self.most)
        if self.least < self.most and final == share:
            return dataclasses.replace(counted, by=EarnedBy.COUNTED)
        return dataclasses.replace(
            counted,
            status=CheckStatus.PASSED if final == 1 else CheckStatus.FAILED,
            points=round(final * check.points, 6),
            message="" if final == 1 else self.said,
            by=EarnedBy.MEASURED,
        )


def time_answer(
    exercise: Exercise, answer: Any, load: LoadAnswer, *, sandbox: Sandbox, seed: int, shown: bool, right: bool
) -> Timed:
    """Measure the answer that `load` holds; `answer` is what the checks called, and cannot be used afterwards.

    `shown` measures a ratio even if counted cost earns the points; `right` says whether the results were right. The
    student's process that the checks used is ended before the timing. Unrequested bytes from it raise
    `AnswerFailedError`.
    """
    if exercise.speed is None or not right:
        return Timed()
    graded = sandbox.measures and not exercise.speed.on(_device(sandbox)).shown_only
    if not graded and not shown:
        return Timed()
    try:
        of = _contest(exercise, answer, load, sandbox, Draw(seed, exercise.id, SECRET))
    except (CheckFailedError, AnswerFailedError) as error:
        return _untimed(error, graded)
    except (MalformedAnswerError, ProtocolError) as error:
        raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None
    try:
        return _measured(of) if graded else Timed(show(of))
    except WrongTimedOutputError as error:
        return _untimed(error, graded)
    except AnswerFailedError as error:
        return _untimed(error, graded and can_be_timed(of.control))
    except (MalformedAnswerError, ProtocolError) as error:
        raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None


def _measured(of: Contest) -> Timed:
    record, found = measure(of)
    missed = found.full if found.verdict is Verdict.PASS else found.passing
    said = " ".join((_sentence(missed.reason), *map(_sentence, record.flags)))
    least, most = found.least, found.most
    if found.suspicious:
        return Timed(record, 0.0, 0.0, f"{said} {REVIEW}")
    if least < most and not _counts_less(record):
        return Timed(record, least, least, f"{said} {AS_COSTLY}")
    return Timed(record, least, most, said)


def _counts_less(record: SpeedRecord) -> bool:
    """Return whether the graph that was timed costs less than the program; true where nobody could count it.

    An undecided ratio leaves the points to the counts of small programs, for which a pass may make another graph.
    """
    found, before = record.answer_cost, record.baseline_cost
    return found is None or before is None or found.launches < before.launches or found.bytes_moved < before.bytes_moved


def _untimed(error: Exception, graded: bool) -> Timed:
    """Return that an answer which cannot be timed earns nothing for speed; where nothing is graded, it changes nothing.

    Raise an `AnswerFailedError` for unrequested bytes again, since these concern the whole answer.
    """
    if isinstance(error, AnswerFailedError) and error.status is ExerciseStatus.MALFORMED_ANSWER:
        raise error
    return Timed(most=0.0, said=str(error)) if graded else Timed()


def _contest(exercise: Exercise, answer: Any, load: LoadAnswer, sandbox: Sandbox, draw: Draw) -> Contest:
    """Return the speed comparison of a graph that the host rebuilt, or of the student's function in new processes."""
    assert exercise.speed is not None, "the caller has asked"
    device = _device(sandbox)
    speed = exercise.speed.on(device)
    program = traced(speed.program, draw)
    if isinstance(answer, GraphAnswer):
        artifact = timed_graph(answer, speed, program, draw)
        answer.student.close()
        return Contest(speed, program, sandbox, exercise.wall_s, draw, artifact=artifact, device=device)
    session: Session = answer.student
    session.close()

    def student() -> Session:
        return Session(sandbox, load, masked=exercise.masked, wall_s=exercise.wall_s)

    return Contest(speed, program, sandbox, exercise.wall_s, draw, student=student, device=device)


def _device(sandbox: Sandbox) -> str:
    return "cuda" if sandbox.has_cuda else "cpu"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
