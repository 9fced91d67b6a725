"""Turn an exception of an answer into a few plain facts for its author."""

import sys
import traceback

from autograder.protocol import Raised

MAX_MESSAGE_CHARACTERS = 1000


class AnswerError(Exception):
    """An answer returned something that cannot be used; the message is a sentence for the student."""


def describe(error: BaseException) -> Raised:
    """Return the exception's type and message, and the innermost line of the answer that was running."""
    if isinstance(error, SyntaxError):
        return _facts(error, error.msg or "", error.filename or "", error.lineno or 0, error.text or "")
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith("<")]
    mine = [f for f in frames if f.filename.startswith(("<answer", "<setup"))]
    last = mine[-1] if mine else None
    try:
        message = str(error)
    except Exception:
        message = "its message cannot be shown"
    return _facts(
        error,
        message,
        last.filename if last else "",
        (last.lineno or 0) if last else 0,
        (last.line or "") if last else "",
    )


def _facts(error: BaseException, message: str, part: str, line: int, text: str) -> Raised:
    return Raised(
        type=type(error).__name__,
        message=message[:MAX_MESSAGE_CHARACTERS],
        part=part[:100],
        line=int(line),
        text=text.strip()[:200],
        said_to_student=_is_said_to_student(error),
    )


def _is_said_to_student(error: BaseException) -> bool:
    """Tell whether the message needs no more words: ours, and what the library says of graphs and schedules."""
    library = sys.modules.get("course_lib.errors")  # which not every worker has imported, or may
    of_the_library = [getattr(library, name, None) for name in ("GraphError", "ScheduleError")]
    return isinstance(error, AnswerError) or type(error) in of_the_library
