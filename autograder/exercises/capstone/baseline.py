"""Exercise 17.1: a baseline record. The host counts the same layer itself; of the environment it checks the form."""

import itertools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted, shortened
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

COUNTERS = ("C1", "C2", "C3", "C4", "C5")
GRAPHS = COUNTERS[:2]
COSTS = tuple((name,) for name in COUNTERS[2:])
LARGEST = 1e15  # of a counter that is compared
EXACT = 1e-9  # relative, of a ratio of two whole numbers
VERSION = re.compile(r"\d+\.\d+\S*")
ENVIRONMENT = {
    "python": "its version, such as '3.11.2'",
    "torch": "its version, such as '2.13.0'",
    "processor": "its name",
    "system": "its name",
    "cores": "a whole number from 1",
    "threads": "a whole number from 1",
}
"""What a record must say of its machine, and in what form; the machine need not be the grader's."""

known = kept(__name__, "known")


def question(draw: Draw, *, alike: bool = False, single: bool = False) -> Question:
    """Draw a layer and the sizes of the batches that it gets one after the other.

    With `alike`, all have one size, and the layer has no dropout. With `single`, one has one example. Launches depend
    on whether there is dropout, and on dimensions of size 1, which need no copy.
    """
    heads = draw.integer(1, 4)
    width = heads * draw.integer(3, 6) * 2
    sizes = draw.sample(range(1, 10), 1 if alike else draw.integer(1, 3))
    batches = [draw.choice(sizes) for _ in range(draw.integer(3, 6))]
    if single:
        batches[draw.integer(0, len(batches) - 1)] = 1
    config = {
        "hidden_size": width,
        "num_heads": heads,
        "intermediate_size": width * draw.integer(2, 4),
        "max_positions": 16,
        "dropout": 0.0 if alike else draw.integer(1, 4) / 10,
        "norm_first": bool(draw.integer(0, 1)),
    }
    return {"config": config, "sequence": draw.choice((1, 4, 6, 8, 10, 12)), "batches": batches}


def counters_of(answer: ValueAnswer, asked: Question) -> Mapping[str, Any]:
    """Return the counters of a record; raises `CheckFailedError` if it has none."""
    record = answer.ask(dict(asked), "counters")
    found: Any = record.get("counters") if isinstance(record, dict) else None
    if not isinstance(found, dict):
        raise CheckFailedError(
            f"The record has counters {shortened(found, 80)}; expected a dict of {', '.join(COUNTERS)}."
        )
    return found


def require_counter(found: Mapping[str, Any], name: str, right: float, says: str, asked: Question) -> None:
    """Require one counter to be the host's; the message ends with `says`."""
    value: Any = found.get(name)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    # larger numbers cannot be subtracted, and NaN would pass a comparison the other way round
    if not number or not abs(value) <= LARGEST or not abs(value - right) <= EXACT * max(1.0, abs(right)):
        raise CheckFailedError(
            f"For batches {asked['batches']} of {asked['sequence']} tokens of width {asked['config']['hidden_size']}, "
            f"{name} is {contrasted(value, right)}. {says}".rstrip()
        )


def layers(draw: Draw) -> list[Question]:
    """Draw the layers of the visible checks: four that differ in launches, graphs and sizes."""
    draw = draw.shared("layers")  # shared, because compiling a layer takes time
    return [question(draw), question(draw, alike=True), question(draw, single=True), question(draw)]


def _counts(parts: Sequence[tuple[str, ...]], answer: ValueAnswer, draw: Draw) -> None:
    records = [(asked, counters_of(answer, asked), known(asked)) for asked in layers(draw)]

    def require(names: tuple[str, ...]) -> None:
        for (asked, found, truth), name in itertools.product(records, names):
            wrong = truth["wrong"].get(name, [])
            says = next((says for value, says in wrong if value == found.get(name)), truth["says"][name])
            require_counter(found, name, truth["right"][name], says, asked)

    share_among(parts, require, noun="counters")


def counts_costs(answer: ValueAnswer, draw: Draw) -> None:
    """Check C3 to C5 of the drawn layers."""
    _counts(COSTS, answer, draw)


def counts_graphs(answer: ValueAnswer, draw: Draw) -> None:
    """Check C1 and C2 of the drawn layers, which count together: C1 is 1 of every layer."""
    _counts([GRAPHS], answer, draw)


def says_where(answer: ValueAnswer, draw: Draw) -> None:
    """Check that the record has a complete environment, in a form that a reader understands."""
    record = answer.ask(layers(draw)[0], "environment")
    found: Any = record.get("environment") if isinstance(record, dict) else None
    if not isinstance(found, dict):
        raise CheckFailedError(
            f"The record has environment {shortened(found, 80)}; expected a dict, such as environment().to_json()."
        )
    for name, form in ENVIRONMENT.items():
        value: Any = found.get(name)
        if name in ("cores", "threads"):
            fits = isinstance(value, int) and not isinstance(value, bool) and value >= 1
        else:
            fits = isinstance(value, str) and bool(value.strip())
            fits = fits and (name not in ("python", "torch") or VERSION.fullmatch(value) is not None)
        if not fits:
            raise CheckFailedError(f"environment[{name!r}] is {shortened(value, 80)}; expected {form}.")


EXERCISE = Exercise(
    title="Record a baseline",
    kind=Kind.VALUE,
    entry_point="baseline",
    points=10,
    wall_s=120,
    hints=(
        "Section 1 measures C3 and C5 of one layer; `cost` has both parts of C4; CompileCounter counts C1 and C2.",
        "C3, C4 and C5 are of the first batch alone: cost and saved_for_backward. For C1 and C2 call the compiled "
        "layer on each batch, and note after each how many graphs there are.",
        "torch._dynamo.reset(), then torch.compile(layer, backend=graphs) with graphs = CompileCounter(). C1 is "
        "graphs.frame_count after the first batch, and C2 what the others add.",
    ),
    checks=(
        Check("the environment is complete", "environment", 0.5, says_where),
        Check("launches, bytes and saved bytes", "C3 to C5", 3, counts_costs),
        Check("graphs and recompiles", "C1 and C2", 2, counts_graphs),
    ),
)
