"""Exercise 03.1: predict the results of trace and script for eight small programs."""

import functools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer
from course_lib.models.small_programs import SMALL_PROGRAMS

Question = Mapping[str, Any]
"""{"program": its name, "capture": "trace" or "script", "example" and "later": {"rows": int, "sum": int}}"""

OUTCOMES = ("agrees", "differs", "fails")
THRESHOLD = 4  # rows, in branch_on_rows
COLUMNS = 2
GROUPS = {
    "branches": ("branch_on_value", "branch_on_rows", "with_options"),
    "rows": ("add_up_rows", "divide_by_rows", "divide_by_len"),
    "numbers outside torch": ("scale_by_item", "through_numpy", "divide_by_len"),
}
RUN_ON = ("branch_on_value", "scale_by_item", "with_options")


def matrix(rows: int, total: int) -> torch.Tensor:
    """Return ones, with a first element that makes them add up to `total`."""
    x = torch.ones(rows, COLUMNS)
    x[0, 0] += total - x.sum()
    return x


def truth(question: Question) -> str:
    """Return what happens: the program is captured with its example, and called with the later input."""
    inputs = [question[when][key] for when in ("example", "later") for key in ("rows", "sum")]
    return _truth(question["program"], question["capture"], *inputs)


@functools.cache
def _truth(name: str, capture: str, rows: int, total: int, later_rows: int, later_total: int) -> str:
    program, later = SMALL_PROGRAMS[name], matrix(later_rows, later_total)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            captured = captured_by(program, capture, matrix(rows, total))
            found = captured(later)
        except Exception:  # compilers and operators raise many types
            return "fails"
        expected = program(later)
    return "agrees" if found.shape == expected.shape and torch.allclose(found, expected) else "differs"


def captured_by(program: Callable[..., Any], capture: str, example: torch.Tensor) -> Any:
    """Return a program captured from an example by `capture`, "script" or "trace"."""
    if capture == "script":
        return torch.jit.script(program)
    return torch.jit.trace(program, (example,), check_trace=False)


def questions(group: str, *, largest: int, rounds: int) -> Callable[[Draw], list[Question]]:
    """Return shuffled questions about each program of a group; the sum, the rows, both or neither change."""

    def drawn(draw: Draw) -> list[Question]:
        found = [q for _ in range(rounds) for name in GROUPS[group] for q in _about(name, draw, largest)]
        return draw.sample(found, len(found))

    return drawn


def _about(name: str, draw: Draw, largest: int) -> Iterator[Question]:
    few, many = draw.integer(2, THRESHOLD), draw.choice((THRESHOLD + 1, draw.integer(THRESHOLD + 1, largest)))
    fewer = few + 1 if few < THRESHOLD else few - 1
    up, down = draw.choice((1, draw.integer(2, 9))), -draw.integer(1, 9)
    pairs = [((few, up), (few, up)), ((few, up), (few, down)), ((few, down), (few, down - 1)), ((many, up), (few, up))]
    pairs += [((few, down), (many, down)), ((few, up), (fewer, up)), ((many, down), (few, up))]
    for example, later in pairs:
        for capture in ("trace", "script"):
            yield {"program": name, "capture": capture, "example": _input(*example), "later": _input(*later)}


def _input(rows: int, total: int) -> dict[str, int]:
    return {"rows": rows, "sum": total}


def _traced(question: Question) -> bool:
    return bool(question["capture"] == "trace")


def _rows_differ(question: Question) -> bool:
    return bool(question["example"]["rows"] != question["later"]["rows"])


MISCONCEPTIONS = (
    Misconception(
        lambda q: "agrees" if _traced(q) and q["program"].startswith("branch") else "",
        "A trace asks nothing again: it keeps the branch that its example took, whatever the later input is.",
    ),
    Misconception(
        lambda q: (
            "fails" if _traced(q) and q["program"] in ("branch_on_value", "scale_by_item", "with_options") else ""
        ),
        "torch.jit.trace runs the program on real numbers, so an `if`, .item() and **options do not stop it.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) and q["program"] == "divide_by_rows" and _rows_differ(q) else "",
        "A size taken by `x.shape[0]` is recorded as an operator, and asked for again in every call.",
    ),
    Misconception(
        lambda q: "agrees" if _traced(q) and q["program"] == "divide_by_len" and _rows_differ(q) else "",
        "Python's `len` must return an int, which the trace cannot follow: it is a constant afterwards.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) and q["program"] == "add_up_rows" else "",
        "The loop was unrolled once per row of the example. Think of what x[5] does on an input of three rows.",
    ),
    Misconception(
        lambda q: "fails" if not _traced(q) and q["program"] not in ("through_numpy", "with_options") else "",
        "Scripting compiles branches, loops, sizes and .item(): this program is inside the language.",
    ),
    Misconception(
        lambda q: "differs" if _traced(q) else "",
        "A trace is wrong only where the later input takes another way, or needs another number, than its example.",
    ),
    Misconception(
        lambda q: "agrees" if not _traced(q) else "",
        "Scripting knows no numpy and no **options: the compiler refuses the source before anything runs.",
    ),
)


def predicted(asked: Callable[[Draw], Sequence[Question]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that every prediction is right."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for question in asked(draw):
            found, expected = answer.ask(question), truth(question)
            if type(found) is not str or found not in OUTCOMES:
                raise CheckFailedError(f"predict returned {repr(found)[:80]}; expected one of {', '.join(OUTCOMES)}.")
            if found != expected:
                why = explained_value(found, question, MISCONCEPTIONS)
                raise CheckFailedError(f"{_described(question)}: predicted {found}, and it {expected}. {why}".strip())

    return run


def _described(question: Question) -> str:
    example, later = question["example"], question["later"]
    return (
        f"{question['program']} by {question['capture']}, example of {example['rows']} rows with sum {example['sum']}, "
        f"later {later['rows']} rows with sum {later['sum']}"
    )


def _visible(group: str) -> Check:
    return Check(f"{group}, a few rows", group, 1.6, predicted(questions(group, largest=7, rounds=1)))


EXERCISE = Exercise(
    title="Predict trace and script",
    kind=Kind.VALUE,
    entry_point="predict",
    points=8,
    wall_s=20,
    masked=("course_lib.models.small_programs",),  # students should predict the programs, not run them
    checks=tuple(map(_visible, GROUPS)),
    hints=(
        "Ask of each program: which of its steps does torch see, and which does Python finish before torch is asked?",
        "Begin with script, where the inputs do not matter. For trace, compare what the program looks at (sum, rows, "
        "nothing) in example and later.",
        "A trace with other rows: `.shape` is asked for again, `len` is not, an unrolled loop is too short or runs out "
        "of rows, and arrays of numpy keep their shape.",
    ),
)
