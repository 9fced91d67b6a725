"""Exercise 03.1: predict the results of trace and script for eight small programs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

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


known = kept(__name__, "known")


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
    pairs += [((many, up), (many + draw.integer(1, 3), up))]
    for example, later in pairs:
        for capture in ("trace", "script"):
            yield {"program": name, "capture": capture, "example": _input(*example), "later": _input(*later)}


def _input(rows: int, total: int) -> dict[str, int]:
    return {"rows": rows, "sum": total}


def predicted(asked: Callable[[Draw], Sequence[Question]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that every prediction is right."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for question in asked(draw):
            found, about = answer.ask(question), known(question)
            expected = about["right"]
            if type(found) is not str or found not in OUTCOMES:
                raise CheckFailedError(f"predict returned {repr(found)[:80]}; expected one of {', '.join(OUTCOMES)}.")
            if found != expected:
                why = named_mistake(found, about["wrong"])
                raise CheckFailedError(f"{_described(question)}: predicted {found}, and it {expected}. {why}".strip())

    return run


def _described(question: Question) -> str:
    example, later = question["example"], question["later"]
    return (
        f"{question['program']} by {question['capture']}, example of {example['rows']} rows with sum {example['sum']}, "
        f"later {later['rows']} rows with sum {later['sum']}"
    )


def _visible(group: str) -> Check:
    return Check(f"{group}, a few rows", group, 1.5, predicted(questions(group, largest=7, rounds=1)))


EXERCISE = Exercise(
    title="Predict trace and script",
    kind=Kind.VALUE,
    entry_point="predict",
    points=8,
    wall_s=20,
    masked=("course_lib.models.small_programs", "torch"),  # students should predict the programs, not run them
    checks=tuple(map(_visible, GROUPS)),
    hints=(
        "Ask of each program: which of its steps does torch see, and which does Python finish before torch is asked?",
        "Begin with script, where the inputs do not matter. For trace, compare what the program looks at (sum, rows, "
        "nothing) in example and later.",
        "A trace with other rows: `.shape` is asked for again, `len` is not, an unrolled loop is too short or runs out "
        "of rows, and arrays of numpy keep their shape.",
    ),
)
