"""Exercise 02.5: name the parts of a program in its timeline, and close each range even after an exception.

The program is data: parts with bodies, operations, and operations that fail. The answer returns the log of a run with
ranges, and the log is checked. The program is random in each call, so no log can be stored in advance.
"""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.checks.known_mistakes import Mistake, mistakes_made, options_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

Part = Question
"""{"name": str, "body": [operation or Part, ...], "catches": bool}; an operation that ends with "!" raises."""

NAMES = ("encoder", "layer", "attention", "scores", "context", "feed_forward", "norm", "dropout", "head", "embed")
OPERATIONS = ("matmul", "softmax", "add", "gelu", "mul", "mean", "view", "copy")


def program(draw: Draw, depth: int, *, failing: bool = False, catching: bool = False) -> Part:
    """Return a random program of parts nested `depth` levels deep; with `failing`, one operation in its middle raises.

    With `catching`, a part around the operation catches the exception, so that the program continues after this part.
    """
    names = iter(draw.sample(NAMES, len(NAMES)))
    failed = [failing]
    root = _part(draw, names, depth, failed)
    if catching:
        _path_to_failure(root)[draw.integer(0, depth - 2)]["catches"] = True
    return root


def _part(draw: Draw, names: Any, depth: int, failing: list[bool]) -> Part:
    body: list[Any] = [draw.choice(OPERATIONS) for _ in range(draw.integer(1, 2))]
    if depth > 1:
        body += [_part(draw, names, depth - 1, failing), draw.choice(OPERATIONS)]
        if depth == 2:
            body += [_part(draw, names, 1, failing), draw.choice(OPERATIONS)]
    elif failing[0]:
        failing[0] = False
        body += [f"{draw.choice(OPERATIONS)}!", draw.choice(OPERATIONS)]
    return {"name": next(names), "body": body, "catches": False}


def _path_to_failure(part: Part) -> list[Part]:
    for item in part["body"]:
        if isinstance(item, str) and item.endswith("!"):
            return [part]
        if isinstance(item, dict) and (path := _path_to_failure(item)):
            return [part, *path]
    return []


OPEN = "A range stays open after a failure; whatever follows would be counted in. Close it in finally."
MISTAKES = (
    *(Mistake({"close": close}, OPEN, "failures") for close in (False, None)),
    Mistake(
        {"swallow": True},
        "Every part caught the failure: ranges must not change what a program does. Let it pass where nobody catches.",
        "failures",
    ),
    Mistake(
        {"catch": False},
        "A part that catches was left by the failure: where `catches` is true, the program goes on behind that part.",
        "behaviour",
    ),
)
"""What may be wrong where an operation fails; each costs the check that counts it."""
known = kept(__name__, "known")
LEFT = "The failure left run_with_ranges: catch it around the whole program, and return the log up to there."


def _log(part: Part, options: Mapping[str, Any]) -> list[str]:
    """Return the log that an answer with these options of mistakes gives."""
    return next(list(log) for mistaken, log in known(part)["logs"] if mistaken == options)


def _mistakes_of(answer: ValueAnswer, draw: Draw) -> tuple[Mistake, ...]:
    """Return the known mistakes of an answer, found with programs in which an operation fails."""
    shared = draw.shared("failing programs")
    kinds = [(depth, catching) for depth in (3, 4) for catching in (False, True)]
    programs = [program(shared, depth, failing=True, catching=catching) for depth, catching in kinds]
    try:
        found = [answer.ask(part) for part in programs]
    except AnswerFailedError as error:
        if error.fatal:
            raise
        return ()
    return mistakes_made(lambda options: found == [_log(p, options) for p in programs], MISTAKES) or ()


def logs(programs: Callable[[Draw], list[Part]], category: str) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer's logs of random programs equal those of runs with ranges.

    A mistake that the check of another category counts costs nothing here.
    """

    def run(answer: ValueAnswer, draw: Draw) -> None:
        counted_elsewhere = [m for m in _mistakes_of(answer, draw) if m.counted != category]
        asked, left = programs(draw), []

        def require(part: Part) -> None:
            try:
                _require_log(answer, part, options_of(counted_elsewhere))
            except _FailureLeftError:
                left.append(part)
                if category == "failures" or len(left) == len(asked):  # one check counts it, if others show more
                    raise

        share_among(asked, require, together=category != "nesting")

    return run


class _FailureLeftError(CheckFailedError):
    """The answer raised what an operation of the program raised."""


def _require_log(answer: ValueAnswer, part: Part, options: Mapping[str, Any]) -> None:
    try:
        found = answer.ask(part)
    except AnswerFailedError as error:
        if error.fatal or "!" not in str(part):
            raise
        answer.ask(_sound(part))  # raises if it is not the failing operation that the answer fails for
        raise _FailureLeftError(f"{error.message} {LEFT}") from None
    expected = _log(part, options)
    if found != expected:
        says = named_mistake(found, known(part)["wrong"])
        raise CheckFailedError(f"{_difference(found, expected)} {says}".rstrip())


def _sound(part: Part) -> Part:
    """Return the same program without a failing operation."""
    body = [item.rstrip("!") if isinstance(item, str) else _sound(item) for item in part["body"]]
    return {**part, "body": body}


def _difference(found: Any, expected: list[str]) -> str:
    if not isinstance(found, list):
        return f"run_with_ranges returned {found!r:.60}; expected a list of texts."
    place = next((i for i, (a, b) in enumerate(zip(found, expected, strict=False)) if a != b), None)
    if place is None:
        return f"The log has {len(found)} lines; expected {len(expected)}."
    return f"Line {place + 1} of the log is {contrasted(found[place], expected[place])}."


def whole(draw: Draw) -> list[Part]:
    """Return programs in which nothing fails."""
    return [program(draw, depth) for depth in (2, 3, 4)]


def failing(draw: Draw) -> list[Part]:
    """Return programs in which one operation raises, and nothing catches it."""
    return [program(draw, depth, failing=True) for depth in (2, 3)]


EXERCISE = Exercise(
    title="Annotate",
    kind=Kind.VALUE,
    entry_point="run_with_ranges",
    points=6,
    wall_s=20,
    hints=(
        "A part is run like a folder tree is walked: something before, something for each member, something after. "
        "What is to happen after it even when a member raises?",
        "Write a function that runs one part and calls itself for a part in its body. Raise an error of your own for "
        "an operation that ends with !, after it is in the log.",
        "`try:` the body, `finally:` the end of the range. The error is caught in the part that catches, and once more "
        "around everything.",
    ),
    checks=(
        Check("ranges appear and nest", "nesting", 2, logs(whole, "nesting")),
        Check("a failure closes every range that is open", "failures", 1.5, logs(failing, "failures")),
    ),
)
