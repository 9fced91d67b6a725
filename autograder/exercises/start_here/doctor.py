"""Exercise 00.1: run the doctor on the machine where the answer runs.

The host compares the answer with its own doctor's report, so values of a machine with other versions are wrong. Values
copied from a machine of the same image, such as a hub's, are right: nothing in them shows who asked. An answer that
asks the machine in another way, such as by `importlib.metadata`, is right, too: it asks where it runs.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch  # noqa: F401 - the doctor reports on the torch that runs

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.value import ValueAnswer
from autograder.host.session import AnswerFailedError
from course_lib.doctor import Finding, doctor

NAMES = (
    *("python", "torch", "numpy", "transformers", "matplotlib", "tensorboard", "jupyterlab"),
    *("triton", "onnx", "onnxscript", "onnxruntime", "netron", "ai-edge-model-explorer", "lightning"),
)
"""Findings that are equal in worker and host: versions, but not threads or free disk space."""


@functools.cache
def found_here() -> Mapping[str, str]:
    """Return what the doctor finds on the host, by name; it is cached, since the doctor runs other programs."""
    return {finding.name: finding.found for finding in _findings()}


@functools.cache
def _findings() -> tuple[Finding, ...]:
    return doctor().findings


def reports(questions: Callable[[Draw], list[list[str]]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer gives the findings of the host's doctor for random lists of names."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for names in questions(draw):
            found, here = _asked(answer, names), found_here()
            expected = {name: here[name] for name in names if name in here}
            if type(found) is not dict or found != expected:
                raise CheckFailedError(_told(names, found, expected))

    return run


def _asked(answer: ValueAnswer, names: list[str]) -> Any:
    try:
        return answer.ask(list(names))
    except AnswerFailedError as error:
        if error.fatal or "Finding;" not in error.message:
            raise
        raise CheckFailedError(f"{error.message} What a finding says is its field `found`.") from None


def _told(names: list[str], found: Any, expected: dict[str, str]) -> str:
    known = ""
    if found == {finding.name: finding.health.value for finding in _findings() if finding.name in expected}:
        known = "That is how each finding stands; return what was found, which is called `found`."
    if isinstance(found, list) and sorted(map(str, found)) == sorted(expected.values()):
        known = "That is a list; return a dict, so that one can see which finding each text belongs to."
    if isinstance(found, dict) and found.items() > expected.items():  # other findings differ between worker and host
        known = "All findings came back: return those whose names are in the list, and no other."
    elif not known and isinstance(found, dict) and set(found) == set(expected):
        known = "The values are not of the machine that checked. An answer runs there, so it has to ask again."
    return f"For {names} the answer is {contrasted(found, expected)}. {known}".rstrip()


def few(draw: Draw) -> list[list[str]]:
    """Return lists of one, two and three names."""
    return [draw.sample(NAMES, count) for count in draw.sample((1, 2, 3, 3), 4)]


def several(draw: Draw) -> list[list[str]]:
    """Return lists of four to nine names."""
    return [draw.sample(NAMES, draw.integer(4, 9)) for _ in range(3)]


EXERCISE = Exercise(
    title="Ask the doctor",
    kind=Kind.VALUE,
    entry_point="ask_doctor",
    points=2,
    wall_s=30,
    hints=(
        "`doctor()` returns a report, and the report has a tuple called `findings`. Show one of them in a cell of its "
        "own: which of its fields do you need?",
        "Start with an empty dict, go through the findings one by one, and keep those whose name was asked for.",
        "A dict comprehension does it in one line: the name before the colon, `found` after it, and behind the loop a "
        "condition with `in names`.",
    ),
    checks=(
        Check("a few findings", "a few findings", 0.5, reports(few)),
        Check("several findings at once", "several findings", 0.5, reports(several)),
    ),
)
