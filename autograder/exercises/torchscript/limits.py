"""Exercise 03.6: determine from the evidence which limit of TorchScript a program has reached."""

from collections.abc import Callable
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.value import ValueAnswer

Evidence = Question
"""The observations: {"capture", "error", "warnings", "same_on_example", "same_on_others", "same_in_evaluation",
"calls_seen"}. "calls_seen" counts how often the program's Python code ran in two calls after capture, 2 in eager mode.
"""

LIMITS = {
    "frozen branch": "The trace asked an `if` once. Its warning speaks of a Python boolean; other inputs differ.",
    "frozen number": "A number left torch and came back a constant. The warning speaks of a Python float or integer.",
    "frozen mode": "Nothing warns: the trace kept `self.training` as it was, so evaluation differs.",
    "lost effect": "All outputs agree, but what the program did besides, in Python, happens no more.",
    "outside the language": "The compiler names a construct of Python that TorchScript does not have.",
    "unknown type": "The compiler took a value for something that it is not, mostly for a Tensor.",
    "none": "Everything agrees, and what Python did besides still happens or there was nothing.",
}
AGREEMENTS = ("same_on_example", "same_on_others", "same_in_evaluation", "calls_seen")

cases = kept(__name__, "cases")


def told_apart(group: str) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer names the limit of each program of a group, from fresh evidence."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for case in cases(group, draw.integer(0, 2**40)):
            seen, limit = case["seen"], case["limit"]
            found = answer.ask(seen)
            if found != limit:
                raise CheckFailedError(f"{_short(seen)} was called {repr(found)[:60]}. {_why(found, seen)}")

    return run


def _why(found: Any, seen: Evidence) -> str:
    for misconception in MISCONCEPTIONS:
        if misconception.formula(seen) == found:
            return misconception.says
    said = LIMITS.get(found, "") if isinstance(found, str) else ""
    return f"{found!r} would mean: {said}" if said else f"The names are {', '.join(LIMITS)}."


MISCONCEPTIONS = (
    Misconception(
        lambda seen: "none" if not seen["error"] else "",
        "Silence was taken for success: a trace can be wrong without a warning, or with harmless ones. Look at what "
        "agrees, and calls_seen.",
    ),
    Misconception(
        lambda seen: "lost effect" if seen["calls_seen"] == 0 else "",
        "calls_seen is 0 after every trace of a program that counts; look first whether the outputs agree.",
    ),
    Misconception(
        lambda seen: "frozen branch" if seen["warnings"] else "",
        "Not every warning is about a branch: read which Python type the tensor was converted to.",
    ),
    Misconception(
        lambda seen: "outside the language" if seen["error"] else "",
        "Not every error is about syntax: the compiler may know the construct and expect another type.",
    ),
)


def _short(seen: Evidence) -> str:
    said = seen["error"] or "; ".join(seen["warnings"]) or "no message"
    agreements = ", ".join(f"{key}={seen[key]}" for key in AGREEMENTS)
    return f"A {seen['capture']} with {agreements} ({said[:600]})"


EXERCISE = Exercise(
    title="Which limit was it?",
    kind=Kind.VALUE,
    entry_point="which_limit",
    points=4,
    wall_s=20,
    checks=(
        Check("traces with a difference, and some without fault", "traces", 1.5, told_apart("traces")),
        Check("scripts", "scripts", 0.25, told_apart("scripts")),
        Check("traces that agree on other inputs", "agreement", 1, told_apart("agreeing traces")),
    ),
    hints=(
        "Sort by what is there: an error, a warning, a difference, or nothing of all that.",
        "With an error it is a script. Does the message name something unsupported, or does it find a value of another "
        "type than it expected?",
        'With `same_on_others` False look for "Python boolean" in the warnings. With True look at same_in_evaluation, '
        "then whether calls_seen is 0.",
    ),
)
