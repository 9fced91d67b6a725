"""Hidden checks and controls of exercise 08.4."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import networkx as nx

from autograder.exercises.aot_autograd.partition import (
    AGAIN,
    BY_MINIMUM_CUT,
    BY_TRYING_ALL,
    Drawn,
    Question,
    cheap,
    cost,
    forward_rows,
    gradients_equal,
    required,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values


def cheapest(question: Mapping[str, Any]) -> list[str]:
    """Return the cheapest cut of a graph of any size, as a minimum cut between a source and a sink.

    Each row has two nodes. If the first is on the sink's side, the row is recomputed; if the second is, it is needed.
    """
    ahead = {r["name"]: r for r in question["rows"] if r["part"] == "forward" and r["tag"] != "input"}
    network = nx.DiGraph([("source", "sink", {"capacity": 0})])
    for name, row in ahead.items():
        network.add_edge((name, "again"), (name, "needed"), capacity=row["bytes"])
        if row["tag"] in AGAIN:
            network.add_edge("source", (name, "again"), capacity=question["price"] * row["flops"])
            network.add_edges_from(((a, "needed"), (name, "again")) for a in row["args"] if a in ahead)
        else:
            network.add_edge("source", (name, "again"))
    read = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}
    network.add_edges_from(((name, "needed"), "sink") for name in ahead if name in read)
    _, (before, after) = nx.minimum_cut(network, "source", "sink")
    return [name for name in ahead if (name, "again") in before and (name, "needed") in after]


Cut = Callable[[Question], list[str]]
"""The form of an answer: maps rows and price to the names of saved rows."""


def by_trying_all(question: Question) -> list[str]:
    """Return the cheapest cut of a small graph by trying both options for every value: saved or recomputed."""
    rows, price = question["rows"], int(question["price"])
    values = {r["name"]: r for r in reversed(forward_rows(rows))}

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


def all_of_forward(question: Question) -> list[str]:
    """Return all values that forward computes."""
    return sorted(r["name"] for r in forward_rows(question["rows"]))


def read_by_backward(question: Question) -> list[str]:
    """Return the values that backward reads directly, so that nothing is recomputed."""
    read = {a for r in question["rows"] if r["part"] == "backward" for a in r["args"]}
    return [n for n in all_of_forward(question) if n in read]


def never_again(question: Question) -> list[str]:
    """Return only the values that may not be recomputed."""
    fixed = {r["name"] for r in forward_rows(question["rows"]) if r["tag"] not in AGAIN}
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


def nearly_free(cheapest: Cut) -> Cut:
    """Return the cut with the fewest bytes and, of these, the fewest FLOPs: the best without a look at the price."""

    def cut(question: Question) -> list[str]:
        rows = [{**row, "bytes": row["bytes"] * 10**6} for row in question["rows"]]
        return sorted(cheapest({"rows": rows, "price": 1}))

    return cut


FREE = "Those are the fewest bytes, as if FLOPs were free; some values are cheaper to keep."
CHEAPEST: Mapping[str, Cut] = {BY_TRYING_ALL: by_trying_all, BY_MINIMUM_CUT: cheapest}

WRONG: Mapping[str, Callable[[Cut], Cut]] = {
    "read_by_backward": lambda _: read_by_backward,
    "never_again": lambda _: never_again,
    "one_by_one": lambda _: one_by_one,
    "as_if_free": nearly_free,
}
"""By name, what makes a wrong method of the right one."""


def costs_of(question: Question, by: str, against: str) -> dict[str, int | None]:
    """Return what the cheapest cut costs, the simple one, and that of a wrong method; None where it is not possible."""
    cuts = {"cheapest": CHEAPEST[by], "read_by_backward": read_by_backward, against: WRONG[against](CHEAPEST[by])}
    return {name: cost(question, cut(question)) for name, cut in cuts.items()}


def wrong_cuts(question: Question, by: str) -> list[list[Any]]:
    """Return the cuts of wrong methods, with their sentences."""
    return wrong_values(question, (*KNOWN, Misconception(as_if_free(CHEAPEST[by]), FREE)))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "large graphs: the fewest bytes",
            "large graphs",
            3,
            cheap(
                BY_MINIMUM_CUT,
                Drawn(0, 25, 2, "never_again"),
                Drawn(0, 30, 0, "one_by_one"),
                Drawn(0, 40, 3, "never_again"),
            ),
        ),
        Check(
            "large graphs: few bytes and few FLOPs",
            "prices",
            3,
            cheap(
                BY_MINIMUM_CUT,
                *(
                    Drawn(3, steps, masks, "as_if_free", least=1.35)
                    for steps, masks in ((25, 0), (30, 1), (30, 2), (40, 1))
                ),
            ),
        ),
        Check("many dropouts: gradients", "dropouts", 1, gradients_equal(Drawn(0, 24, 9), Drawn(1, 20, 12))),
        Check(
            "many dropouts: the fewest bytes",
            "dropouts",
            1,
            cheap(BY_MINIMUM_CUT, Drawn(0, 14, 6, "never_again"), Drawn(0, 20, 12, "never_again")),
        ),
    ),
    controls=(
        ANSWERS.reference(17),
        ANSWERS.edited("as if FLOPs were free", 13.6, ("question['price'] * row['flops']", "0"), below=True),
        ANSWERS.file("what backward reads", 10, below=True),
        ANSWERS.file("all of forward", 4, below=True),
        ANSWERS.file("all cuts of small graphs", 17, below=True),
        Control(
            "rows of backward",
            "def partition(question):\n    return [r['name'] for r in question['rows'] if r['part'] == 'backward']\n",
            0,
        ),
    ),
)
