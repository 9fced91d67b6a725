"""Find the text that is graded: the whole cell that defines an answer.

The grader runs the set-up cell and the answer cell, nothing else of the notebook. Practice hands over the same text, so
an answer that works only because of some other cell is found out here.
"""

from __future__ import annotations

import functools
import inspect
import linecache
from types import CodeType
from typing import Any

from autograder.practice.errors import NoSourceError


def cell_source(answer: object) -> str:
    """The source of the cell, or of the module, in which the function or class ``answer`` was defined.

    IPython keeps the text of each executed cell in `linecache` under a file name of its own, which the function's code
    object remembers. Raises `NoSourceError` for what is no function or class, and where no text was kept.
    """
    code = _code_of(answer)
    if code is None:
        raise NoSourceError(
            f"check needs the function you wrote, without brackets; it was given {_described(answer)}. "
            'Write check("exercise_id", your_function).'
        )
    source = "".join(linecache.getlines(code.co_filename))
    if not source:
        raise NoSourceError(
            f"The text of {code.co_name} was not kept by this Python session. "
            "Define it in a notebook cell or in a file, run that, and call check again."
        )
    return source


def _code_of(answer: object) -> CodeType | None:
    """The code object whose file name leads to the text; of a class, that of the first function in its body."""
    if isinstance(answer, functools.partial):
        return _code_of(answer.func)
    if isinstance(answer, type):
        bodies = (_code_of(member) for member in vars(answer).values() if inspect.isroutine(member))
        return next((code for code in bodies if code is not None), None)
    answer = inspect.unwrap(answer) if callable(answer) else answer
    code: Any = getattr(answer, "__code__", None)
    return code if isinstance(code, CodeType) else None


def _described(answer: object) -> str:
    return "None" if answer is None else f"an object of type {type(answer).__name__}"
