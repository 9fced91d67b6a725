"""Load an answer: its parts, set-up first, run as one fresh module."""

import linecache
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any

from autograder.worker.failures import AnswerError

MODULE_NAME = "answer"


class NoEntryPointError(AnswerError):
    """The cells ran, but they define no function of the name that the exercise asks for."""


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
        # linecache lets tracebacks, inspect and torch.jit.script find the lines of code that is in no file
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        # dont_inherit: annotations of an answer are what they are in a notebook, and not text as in this file
        exec(compile(text, filename, "exec", dont_inherit=True), module.__dict__)
    return module
