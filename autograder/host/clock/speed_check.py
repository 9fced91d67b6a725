"""The judge's last step: time an answer that gave right results, and give the points for speed.

Measured speed earns points on CUDA only. Elsewhere its share is "not assessed here" and left out of points and
maximum, and the ratio is only shown. No other check of an exercise depends on the clock.
"""

from dataclasses import dataclass
from typing import Any

from autograder.host.channel import MalformedAnswerError
from autograder.host.clock.contest import Contest, contest, measure, show
from autograder.host.clock.trial import WrongTimedOutputError
from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError, Exercise, Kind
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.records import CheckRecord, CheckStatus, ExerciseStatus, SpeedRecord
from autograder.host.sandbox import Sandbox
from autograder.host.session import AnswerFailedError, Session
from autograder.host.speed import Speed
from autograder.host.traced import traced
from autograder.protocol import ProtocolError
from autograder.protocol.requests.loads import LoadAnswer

NAME, CATEGORY = "as fast as asked for", "measured speed"
NOT_HERE = "Measured speed is graded on a CUDA device only, and there is none here."


@dataclass(frozen=True)
class Timed:
    """The result: the record to show, and the check if there are points for speed."""

    record: SpeedRecord | None = None
    check: CheckRecord | None = None


def time_answer(
    exercise: Exercise, answer: Any, load: LoadAnswer, *, sandbox: Sandbox, seed: int, shown: bool, right: bool
) -> Timed:
    """Measure the answer that `load` holds; `answer` is what the checks called, and cannot be used afterwards.

    `shown` measures a ratio even if it earns none; `right` says whether the results were right. The student's
    process that the checks used is ended before the timing. Unrequested bytes from it raise `AnswerFailedError`.
    """
    speed = exercise.speed
    if speed is None:
        return Timed()
    graded = speed.points > 0 and sandbox.has_cuda
    if not right:
        return _without_record(speed, graded, CheckStatus.FAILED, "Not timed, because the results are wrong.")
    if not graded and not shown:
        return Timed(None, _check(speed, CheckStatus.NOT_ASSESSED, 0.0, NOT_HERE))
    draw = Draw(seed, exercise.id, CATEGORY)
    try:
        of = _contest(exercise, speed, answer, load, sandbox, draw)
        if not graded:
            return Timed(show(of), _check(speed, CheckStatus.NOT_ASSESSED, 0.0, NOT_HERE))
        record, share = measure(of)
    except (CheckFailedError, WrongTimedOutputError) as error:
        return _without_record(speed, graded, CheckStatus.FAILED, str(error))
    except AnswerFailedError as error:
        if error.status is ExerciseStatus.MALFORMED_ANSWER:
            raise
        return _without_record(speed, graded, CheckStatus.ERROR, error.message)
    except (MalformedAnswerError, ProtocolError) as error:
        raise AnswerFailedError(ExerciseStatus.MALFORMED_ANSWER, str(error), fatal=True) from None
    status = CheckStatus.PASSED if share == 1 else CheckStatus.FAILED
    if record.verdict == "environment":
        status, share = CheckStatus.NOT_ASSESSED, 0.0
    message = (
        "" if status is CheckStatus.PASSED else " ".join((_sentence(record.reason), *map(_sentence, record.flags)))
    )
    return Timed(record, _check(speed, status, share, message))


def _contest(exercise: Exercise, speed: Speed, answer: Any, load: LoadAnswer, sandbox: Sandbox, draw: Draw) -> Contest:
    """Return the speed comparison of a graph that the host rebuilt, or of the student's function in new processes."""
    device = "cuda" if sandbox.has_cuda else "cpu"
    if exercise.kind is Kind.GRAPH:
        assert isinstance(answer, GraphAnswer), "a pass has answered"
        artifact = answer.transform(traced(speed.program, draw))
        answer.student.close()
        return contest(speed, draw, sandbox, exercise.wall_s, artifact=artifact, device=device)
    session: Session = answer.student
    session.close()

    def student() -> Session:
        return Session(sandbox, load, masked=exercise.masked, wall_s=exercise.wall_s)

    return contest(speed, draw, sandbox, exercise.wall_s, student=student, device=device)


def _without_record(speed: Speed, graded: bool, status: CheckStatus, message: str) -> Timed:
    """Return a check with `status` if speed is graded, and one that is "not assessed" otherwise."""
    if graded:
        return Timed(None, _check(speed, status, 0.0, message))
    return Timed(None, _check(speed, CheckStatus.NOT_ASSESSED, 0.0, NOT_HERE))


def _check(speed: Speed, status: CheckStatus, share: float, message: str) -> CheckRecord | None:
    if not speed.points:
        return None
    return CheckRecord(NAME, CATEGORY, False, status, round(share * speed.points, 6), speed.points, message)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
