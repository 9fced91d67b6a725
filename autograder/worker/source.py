"""Load an answer: run its parts, set-up first, as one new module; describe where an exception was raised in them."""

import linecache
import sys
import traceback
import types
from collections.abc import Callable, Mapping
from typing import Any

from autograder.protocol import Raised

MODULE_NAME = "answer"
MAX_MESSAGE_CHARACTERS = 1000


class AnswerError(Exception):
    """An answer returned something that cannot be used; the message is a sentence for the student."""


class NoEntryPointError(AnswerError):
    """The cells ran, but they do not define a function with the name in the exercise."""


def load(parts: Mapping[str, str], entry_point: str) -> Callable[..., Any]:
    """Run `parts` (name of a cell to its text) in one module and return its function `entry_point`."""
    run(parts)
    return function(entry_point)


def function(name: str) -> Callable[..., Any]:
    """Return the function or class of that name in the answer that is loaded."""
    found = sys.modules[MODULE_NAME].__dict__.get(name)
    if not callable(found):
        raise NoEntryPointError(
            f"The answer defines no function `{name}`. Keep that name and put it in the answer cell."
        )
    return found


def run(parts: Mapping[str, str]) -> types.ModuleType:
    """Run `parts` in one fresh module and return it."""
    module = types.ModuleType(MODULE_NAME)
    sys.modules[MODULE_NAME] = module
    for name, text in parts.items():
        filename = f"<{name}>"
        # tracebacks, inspect and torch.jit.script find source lines of code without a file in linecache
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        # dont_inherit: annotations of an answer are evaluated as in a notebook, and not kept as text
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
    return module


def describe(error: BaseException) -> Raised:
    """Return the exception's type and message, and the innermost line of the answer in its traceback."""
    part, line, text = "", 0, ""
    if isinstance(error, SyntaxError):
        message, part, line, text = error.msg or "", error.filename or "", error.lineno or 0, error.text or ""
    else:
        try:
            message = str(error)
        except Exception:
            message = "its message cannot be shown"
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename.startswith(("<answer", "<setup")):
                part, line, text = frame.filename, frame.lineno or 0, frame.line or ""
    return Raised(
        type=type(error).__name__,
        message=message[:MAX_MESSAGE_CHARACTERS],
        part=part[:100],
        line=int(line),
        text=text.strip()[:200],
        said_to_student=_is_said_to_student(error),
    )


def _is_said_to_student(error: BaseException) -> bool:
    """Tell whether the message is complete: the grader wrote it, or the library about graphs and schedules."""
    library = sys.modules.get("course_lib.errors")  # some workers have not imported it, and some may not
    of_the_library = [getattr(library, name, None) for name in ("GraphError", "ScheduleError")]
    return isinstance(error, AnswerError) or type(error) in of_the_library
