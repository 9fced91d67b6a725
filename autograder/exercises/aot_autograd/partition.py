"""Exercise 08.4: choose the values that forward saves for backward: few bytes, and little recomputation."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.exercises.programs.joint_graphs import JointGraph, Row, random_joint, run_backward, run_forward
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception, explained_value
from autograder.host.kinds.value import ValueAnswer

AGAIN = ("pointwise", "view")
MARGIN = 1.05  # most that an answer may cost, relative to the cheapest cut
MOST_TRIED = 11  # values in a graph for which all cuts are tried
Question = Mapping[str, Any]
Cut = Callable[[Question], list[str]]  # the form of an answer: maps rows and price to the names of saved rows


def required(rows: Sequence[Row], saved: Collection[str]) -> dict[str, str]:
    """Return the forward values that backward reads or recomputes, without inputs, each with its first reader."""
    ahead = {r["name"]: r for r in _values(rows)}
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


def by_trying_all(question: Question) -> list[str]:
    """Return the cheapest cut of a small graph by trying both options for every value: saved or recomputed."""
    rows, price = question["rows"], int(question["price"])
    values = {r["name"]: r for r in reversed(_values(rows))}

    def cheapest(
        left: Sequence[str], needed: frozenset[str], saved: Sequence[str], so_far: int
    ) -> tuple[int, list[str]]:
        """Return the lowest cost and its cut; `left` lists the undecided values from the last to the first."""
        while left and left[0] not in needed:
            left = left[1:]
        if not left:
            return so_far, sorted(saved)
        row, left = values[left[0]], left[1:]
        best = cheapest(left, needed, (*saved, row["name"]), so_far + row["bytes"])
        again = so_far + price * row["flops"]
        if row["tag"] in AGAIN and again <= best[0]:
            best = min(best, cheapest(left, needed.union(row["args"]), saved, again))
        return best

    read = {a for r in rows if r["part"] == "backward" for a in r["args"]}
    return cheapest(tuple(values), frozenset(read), (), 0)[1]


def _values(rows: Sequence[Row]) -> list[Row]:
    return [r for r in rows if r["part"] == "forward" and r["tag"] != "input"]


def all_of_forward(question: Question) -> list[str]:
    """Return all values that forward computes."""
    return sorted(r["name"] for r in _values(question["rows"]))


def read_by_backward(question: Question) -> list[str]:
    """Return the values that backward reads directly, so that nothing is recomputed."""
    read = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}
    return [n for n in all_of_forward(question) if n in read]


def never_again(question: Question) -> list[str]:
    """Return only the values that may not be recomputed."""
    fixed = {r["name"] for r in _values(question["rows"]) if r["tag"] not in AGAIN}
    return sorted(fixed & required(question["rows"], fixed).keys())


def one_by_one(question: Question) -> list[str]:
    """Return the values that backward reads, after dropping one at a time if this does not raise the cost."""
    saved = read_by_backward(question)
    for name in tuple(saved):
        fewer, before = [n for n in saved if n != name], cost(question, saved)
        found = cost(question, fewer)
        if found is not None and before is not None and found <= before:
            saved = fewer
    return saved


KNOWN = (
    Misconception(all_of_forward, "All of forward is saved; backward reads only some of it."),
    Misconception(
        read_by_backward,
        "That is all that backward reads, and nothing is computed again: what a pointwise row gives from others that "
        "are there need not be kept.",
    ),
    Misconception(
        never_again,
        "Only what must not be computed again is saved. It may cost less to save what was made of it: the sum of two "
        "products has half their bytes, and a long chain costs FLOPs.",
    ),
    Misconception(
        one_by_one,
        "Values that backward reads were dropped one by one. It may cost less to save one that backward does not "
        "read, and to compute several from it.",
    ),
)


def as_if_free(cheapest: Cut) -> Cut:
    """Return the cut with the fewest bytes, without counting FLOPs."""
    return lambda question: sorted(cheapest({**question, "price": 0}))


@dataclass(frozen=True)
class Drawn:
    """Settings for a random graph in which the cut of the wrong method `against` costs too much."""

    price: int  # cost of one FLOP in bytes
    steps: int
    masks: int  # number of steps that are dropouts
    against: Cut = read_by_backward

    def graph(self, draw: Draw, cheapest: Cut) -> tuple[JointGraph, int]:
        """Return the graph, and the cost of its cheapest cut."""
        while True:
            graph = random_joint(draw, self.steps, masks=self.masks)
            question = {"rows": graph.rows, "price": self.price}
            if cheapest is by_trying_all and len(_values(graph.rows)) > MOST_TRIED:
                continue
            best, simple = cost(question, cheapest(question)), cost(question, read_by_backward(question))
            wrong = cost(question, self.against(question))
            assert best is not None, "saving everything is always possible"
            if best and min(wrong or 0, simple or 0) > MARGIN * best:
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
    """Return a check that backward can run from the saved values, at no higher cost than saving all that it reads."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for drawn in several:
            graph = random_joint(draw, drawn.steps, masks=drawn.masks)
            question = {"rows": graph.rows, "price": drawn.price}
            saved = chosen(answer, question)
            found, simple = require_possible(question, saved), require_possible(question, read_by_backward(question))
            if found > simple:
                raise CheckFailedError(_too_much(question, saved, simple, KNOWN))

    return run


def cheap(cheapest: Cut, *several: Drawn) -> Run:
    """Return a check that cuts are possible and cost at most `MARGIN` times as much as the cheapest cut."""
    free = Misconception(
        as_if_free(cheapest), "Those are the fewest bytes, as if FLOPs were free; some values are cheaper to keep."
    )

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for drawn in several:
            graph, best = drawn.graph(draw, cheapest)
            question = {"rows": graph.rows, "price": drawn.price}
            saved = chosen(answer, question)
            if require_possible(question, saved) > MARGIN * best:
                raise CheckFailedError(_too_much(question, saved, best, (*KNOWN, free)))

    return run


def _too_much(question: Question, saved: list[str], enough: int, known: Sequence[Misconception]) -> str:
    size, flops = spent(question["rows"], saved) or (0, 0)
    price = question["price"]
    said = f"In a graph of {len(question['rows'])} rows {size:,} bytes are saved and {flops:,} FLOPs computed again"
    said += f"; at a price of {price} that costs {size + price * flops:,}, and {enough:,} are enough."
    return f"{said} {explained_value(sorted(saved), question, known)}".strip()


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
                masks = [r["name"] for r in _values(graph.rows) if r["tag"] == "random" and r["name"] not in saved]
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
            2.25,
            possible(Drawn(0, 6, 1), Drawn(1, 9, 1), Drawn(0, 12, 2), Drawn(2, 7, 0)),
        ),
        Check("gradients of the uncut graph", "gradients", 1.75, gradients_equal(Drawn(0, 8, 2), Drawn(2, 12, 2))),
        Check(
            "the fewest bytes",
            "bytes",
            3.5,
            cheap(
                by_trying_all,
                *(
                    Drawn(0, steps, masks, idea)
                    for idea in (never_again, one_by_one)
                    for steps, masks in ((5, 0), (4, 1))
                ),
            ),
        ),
        Check(
            "few bytes and few FLOPs",
            "FLOPs have a price",
            2.75,
            cheap(
                by_trying_all,
                Drawn(1, 4, 0, one_by_one),
                Drawn(1, 5, 1, never_again),
                Drawn(2, 5, 1, never_again),
                Drawn(2, 5, 0, as_if_free(by_trying_all)),
            ),
        ),
    ),
)
