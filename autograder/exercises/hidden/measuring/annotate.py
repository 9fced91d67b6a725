"""Hidden checks and controls of exercise 02.5."""

import itertools
from collections.abc import Mapping
from typing import Any

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.measuring import annotate as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

Part = visible.Part


def _catching(draw: Draw) -> list[Part]:
    return [visible.program(draw, depth, failing=True, catching=True) for depth in (2, 3, 4, 4)]


def _deep(draw: Draw) -> list[Part]:
    return [visible.program(draw, depth, failing=fails) for depth in (5, 6) for fails in (False, True)]


def expected_log(part: Part, *, close: bool | None = True, swallow: bool = False, catch: bool = True) -> list[str]:
    """Return the log of a run; the options give wrong ones.

    If `close` is False, failed ranges stay open but for the part that catches; if it is None, that one, too. With
    `swallow` every part catches failures, without `catch` none does.
    """
    return _run(part, close, swallow, catch)[0]


def _run(part: Part, close: bool | None, swallow: bool, catch: bool) -> tuple[list[str], bool]:
    """Return the log, and whether the part raises."""
    log = [f"begin {part['name']}"]
    for item in part["body"]:
        inner, failed = (
            ([item.rstrip("!")], item.endswith("!")) if isinstance(item, str) else _run(item, close, swallow, catch)
        )
        log += inner
        if failed:
            leaves = not ((part["catches"] and catch) or swallow)
            return (log + [f"end {part['name']}"] * (close or (close is False and not leaves))), leaves
    return [*log, f"end {part['name']}"], False


def _without_ranges(part: Part) -> list[str]:
    return [line for line in expected_log(part) if " " not in line]


def _flat(part: Part) -> list[str]:
    """Return a wrong log: each part's range is only around its own operations, with inner parts before or after."""
    own = [item.rstrip("!") for item in part["body"] if isinstance(item, str)]
    inner = [line for item in part["body"] if isinstance(item, dict) for line in _flat(item)]
    return [f"begin {part['name']}", *own, f"end {part['name']}", *inner]


def _never_stops(part: Part) -> list[str]:
    lines = [f"begin {part['name']}"]
    for item in part["body"]:
        lines += [item.rstrip("!")] if isinstance(item, str) else _never_stops(item)
    return [*lines, f"end {part['name']}"]


MISCONCEPTIONS = (
    Misconception(_without_ranges, "There are no ranges in it: log begin and end of each part around what it runs."),
    Misconception(_flat, "The ranges do not nest: what a part runs inside belongs between its begin and its end."),
    *(Misconception(lambda part, options=m.options: expected_log(part, **options), m.says) for m in visible.MISTAKES),
    Misconception(_never_stops, "An operation whose name ends with ! raises: nothing after it in its part runs."),
)


def known(part: Part) -> Mapping[str, Any]:
    """Return the logs with no known mistake of `MISTAKES`, with each and each two, and all known wrong logs."""
    every = [m.options for m in visible.MISTAKES]
    chosen = [pair for count in (0, 1, 2) for pair in itertools.combinations(every, count)]
    options = [dict(item for each in pair for item in each.items()) for pair in chosen]
    return {
        "logs": [[each, expected_log(part, **each)] for each in options],
        "wrong": wrong_values(part, MISCONCEPTIONS),
    }


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("behaviour stays the same where a part catches", "behaviour", 1.5, visible.logs(_catching, "behaviour")),
        Check("deep programs", "deep nesting", 1, visible.logs(_deep, "deep nesting")),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.edited("ranges stay open", 4.5, ("finally:", "except KeyError:\n            pass\n        else:")),
        ANSWERS.edited("ranges swallow failures", 4.5, ("if not part['catches']:\n                raise", "pass")),
        Control(
            "operations alone",
            "def run_with_ranges(program):\n    return [i for i in program['body'] if i == str(i)]\n",
            0,
        ),
    ),
)
