"""Exercise 08.4: choose the values that forward saves for backward: few bytes, and little recomputation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.exercises.programs.joint_graphs import JointGraph, Row, random_joint, run_backward, run_forward
from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer
from autograder.host.point_shares import share_among

AGAIN = ("pointwise", "view")
MARGIN = 1.05  # cost that earns all points, relative to the cheapest cut
MOST_TRIED = 11  # values in a graph for which all cuts are tried
Question = Mapping[str, Any]
BY_TRYING_ALL, BY_MINIMUM_CUT = "trying all", "minimum cut"  # how the cheapest cut of a question is found

costs_of = kept(__name__, "costs_of")
wrong_cuts = kept(__name__, "wrong_cuts")


def required(rows: Sequence[Row], saved: Collection[str]) -> dict[str, str]:
    """Return the forward values that backward reads or recomputes, without inputs, each with its first reader."""
    ahead = {r["name"]: r for r in forward_rows(rows)}
    readers: dict[str, str] = {}

    def read_by(row: Row) -> None:
        for name in reversed(row["args"]):
            if name in ahead:
                readers[name] = readers.pop(name, row["name"])

    for row in rows:
        if row["part"] == "backward":
            read_by(row)
    for name in reversed(ahead):
        if name in readers and name not in saved:
            read_by(ahead[name])
    return dict(reversed(readers.items()))


def spent(rows: Sequence[Row], saved: Collection[str]) -> tuple[int, int] | None:
    """Return saved bytes and recomputed FLOPs, or None if a row would be recomputed that may not be."""
    by_name = {r["name"]: r for r in rows}
    again = [by_name[n] for n in required(rows, saved) if n not in saved]
    if any(r["tag"] not in AGAIN for r in again):
        return None
    return sum(by_name[n]["bytes"] for n in saved), sum(r["flops"] for r in again)


def cost(question: Question, saved: Collection[str]) -> int | None:
    """Return the cost of a cut, or None if backward cannot be computed from it."""
    found = spent(question["rows"], saved)
    return None if found is None else found[0] + int(question["price"]) * found[1]


def forward_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that forward computes."""
    return [r for r in rows if r["part"] == "forward" and r["tag"] != "input"]


@dataclass(frozen=True)
class Drawn:
    """Settings for a random graph in which the cut of the wrong method `against` costs too much."""

    price: int  # cost of one FLOP in bytes
    steps: int
    masks: int  # number of steps that are dropouts
    against: str = "read_by_backward"  # a wrong method that `costs_of` knows
    least: float = MARGIN  # cost of that cut, relative to the cheapest one

    def graph(self, draw: Draw, by: str) -> tuple[JointGraph, int]:
        """Return the graph, and the cost of its cheapest cut."""
        while True:
            graph = random_joint(draw, self.steps, masks=self.masks)
            question = {"rows": graph.rows, "price": self.price}
            if by == BY_TRYING_ALL and len(forward_rows(graph.rows)) > MOST_TRIED:
                continue
            costs = costs_of(question, by, self.against)
            best, simple, wrong = costs["cheapest"], costs["read_by_backward"] or 0, costs[self.against] or 0
            if best and simple > MARGIN * best and wrong > self.least * best:
                return graph, best


def chosen(answer: ValueAnswer, question: Question) -> list[str]:
    """Return the names that an answer saves; check that they are different rows of forward and not inputs."""
    found = answer.ask(question)
    if not isinstance(found, list) or not all(isinstance(n, str) for n in found):
        raise CheckFailedError("partition returns a list of names of rows.")
    tags = {r["name"]: r["tag"] for r in question["rows"] if r["part"] == "forward"}
    for number, name in enumerate(found):
        if name not in tags:
            raise CheckFailedError(f"{name[:40]!r} is no row of forward; only what forward computes can be saved.")
        if tags[name] == "input":
            raise CheckFailedError(f"{name} is an input of the graph: it is there anyway, and not named.")
        if name in found[:number]:
            raise CheckFailedError(f"{name} is named twice.")
    return found


def require_possible(question: Question, saved: Collection[str]) -> int:
    """Return the cost of a cut; raise `CheckFailedError` if a row would be recomputed that may not be."""
    tags = {r["name"]: r["tag"] for r in question["rows"]}
    for name, reader in required(question["rows"], saved).items():
        if name not in saved and tags[name] not in AGAIN:
            why = "another mask would come out" if tags[name] == "random" else "that is too much work"
            raise CheckFailedError(
                f"{reader} needs {name} in backward. It is not saved, and would be computed again; but {name} is a "
                f"{tags[name]} row: {why}. Save it, or something that makes it unnecessary."
            )
    found = cost(question, saved)
    assert found is not None, "what is possible has a cost"
    return found


Run = Callable[[ValueAnswer, Draw], None]


def possible(*several: Drawn) -> Run:
    """Return a check that backward can run from the saved values, whatever they cost."""

    def require(answer: ValueAnswer, drawn: Drawn, draw: Draw) -> None:
        graph = random_joint(draw, drawn.steps, masks=drawn.masks)
        question = {"rows": graph.rows, "price": drawn.price}
        require_possible(question, chosen(answer, question))

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(several, lambda drawn: require(answer, drawn, draw), noun="graphs", together=True)

    return run


def cheap(by: str, *several: Drawn) -> Run:
    """Return a check that cuts are possible and cost at most `MARGIN` times as much as the cheapest cut.

    A cut that costs more earns a part; see `share_at`.
    """

    def require(answer: ValueAnswer, drawn: Drawn, draw: Draw) -> None:
        graph, best = drawn.graph(draw, by)
        question = {"rows": graph.rows, "price": drawn.price}
        saved = chosen(answer, question)
        known = wrong_cuts.later(question, by)
        share = share_at(require_possible(question, saved) / best)
        if share < 1:
            raise CheckFailedError(_too_much(question, saved, best, known()), share=share)

    def run(answer: ValueAnswer, draw: Draw) -> None:
        share_among(several, lambda drawn: require(answer, drawn, draw), noun="graphs")

    return run


def share_at(ratio: float) -> float:
    """Return the share of the points for a cut that costs `ratio` times as much as the cheapest one.

    >>> share_at(1.05), round(share_at(1.3), 6), share_at(1.55)
    (1.0, 0.5, 0.0)
    """
    return 1.0 if ratio <= MARGIN else max(0.0, round(1 - 2 * (ratio - MARGIN), 6))


def _too_much(question: Question, saved: list[str], enough: int, known: Sequence[Sequence[Any]]) -> str:
    size, flops = spent(question["rows"], saved) or (0, 0)
    price = question["price"]
    said = f"In a graph of {len(question['rows'])} rows {size:,} bytes are saved and {flops:,} FLOPs computed again"
    said += f"; at a price of {price} that costs {size + price * flops:,}, and {enough:,} are enough."
    return f"{said} {named_mistake(sorted(saved), known)}".strip()


def gradients_equal(*several: Drawn) -> Run:
    """Return a check that runs forward, keeps only the saved values, runs backward, and compares the gradients."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for drawn in several:
            graph = random_joint(draw, drawn.steps, masks=drawn.masks)
            saved = chosen(answer, {"rows": graph.rows, "price": drawn.price})
            forward = run_forward(graph, draw)
            right, found = run_backward(graph, forward, list(forward)), run_backward(graph, forward, saved)
            wrong = [primal for primal in right if not torch.equal(found[primal], right[primal])]
            if wrong:
                masks = [r["name"] for r in forward_rows(graph.rows) if r["tag"] == "random" and r["name"] not in saved]
                raise CheckFailedError(
                    f"The gradient by {wrong[0]} is another one than without a cut: {', '.join(masks)} was not saved, "
                    "so backward drew another mask than forward had."
                )

    return run


EXERCISE = Exercise(
    title="Choose the cut",
    kind=Kind.VALUE,
    entry_point="partition",
    points=17,
    wall_s=40,
    hints=(
        "Each row of forward has one of three fates: saved, computed again, or not needed. What does each ask of its "
        "args?",
        "Think of a network from a source to a sink, in which saving a row cuts an edge of as many bytes. Edges "
        "without limit: from what backward reads to the sink, and from the source to what may not be computed again.",
        "Two nodes a row, one before and one after its edge. From the source to the first leads an edge of price times "
        "FLOPs, and from the second node of each arg one without limit; minimum_cut gives both sides.",
    ),
    checks=(
        Check(
            "backward can be computed",
            "possible cuts",
            1,
            possible(Drawn(0, 6, 1), Drawn(1, 9, 1), Drawn(0, 12, 2), Drawn(2, 7, 0)),
        ),
        Check("gradients of the uncut graph", "gradients", 1, gradients_equal(Drawn(0, 8, 2), Drawn(2, 12, 2))),
        Check(
            "the fewest bytes",
            "bytes",
            4,
            cheap(
                BY_TRYING_ALL,
                *(
                    Drawn(0, steps, masks, idea)
                    for idea in ("never_again", "one_by_one")
                    for steps, masks in ((5, 0), (4, 1))
                ),
            ),
        ),
        Check(
            "few bytes and few FLOPs",
            "FLOPs have a price",
            3,
            cheap(
                BY_TRYING_ALL,
                Drawn(1, 4, 0, "one_by_one"),
                Drawn(3, 4, 0, "as_if_free", least=1.5),
                Drawn(4, 5, 1, "as_if_free", least=1.5),
                Drawn(3, 5, 0, "as_if_free", least=1.5),
            ),
        ),
    ),
)
