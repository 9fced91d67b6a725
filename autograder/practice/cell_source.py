"""Find the text that is graded: the whole cell that defines an answer.

The grader runs the set-up cell and the answer cell, nothing else of the notebook. Practice sends the same text, so it
reveals an answer that works only because of another cell.
"""

import ast
import functools
import inspect
import linecache
from types import CodeType
from typing import Any

from autograder.practice.errors import NoSourceError, NotGradableError

MAGIC = "get_ipython"  # IPython turns the commands % and ! into calls of this function
PRACTICE = {"check", "hint", "progress"}


def cell_source(answer: object) -> str:
    """Return the source of the cell or module that defines the function or class `answer`.

    IPython keeps the text of each executed cell in `linecache` under a file name of its own, which the function's code
    object stores. Raise `NoSourceError` for anything else than a function or class, and where no text was kept.
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


def require_gradable(text: str) -> None:
    """Raise `NotGradableError` for a cell that needs the notebook: % or !, or a call of `check` or `hint`."""
    try:
        calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
        called = {function.id for function in calls if isinstance(function, ast.Name)}
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return  # the report names the line
    if MAGIC in called:
        raise NotGradableError(
            "The answer's cell holds a command of the notebook (a line with % or !), which the grader does not know. "
            "Move it to a cell of its own, run the answer again, and call check again."
        )
    if called & PRACTICE:
        raise NotGradableError(
            f"The answer's cell also calls {min(called & PRACTICE)}, which the grader does not know. "
            "Keep the answer in its cell, and call check in the one below."
        )


def _code_of(answer: object) -> CodeType | None:
    """Return the code object whose file name leads to the text; for a class, that of its first function."""
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
