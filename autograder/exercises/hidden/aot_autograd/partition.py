"""Hidden checks and controls of exercise 08.4."""

from collections.abc import Mapping
from typing import Any

import networkx as nx

from autograder.exercises.aot_autograd.partition import (
    AGAIN,
    Drawn,
    as_if_free,
    cheap,
    gradients_equal,
    never_again,
    one_by_one,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart


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


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "large graphs: the fewest bytes",
            "large graphs",
            2.5,
            cheap(cheapest, Drawn(0, 25, 2, never_again), Drawn(0, 30, 0, one_by_one), Drawn(0, 40, 3, never_again)),
        ),
        Check(
            "large graphs: few bytes and few FLOPs",
            "prices",
            2.5,
            cheap(
                cheapest,
                Drawn(1, 25, 0, one_by_one),
                Drawn(1, 30, 2, never_again),
                Drawn(2, 30, 2, as_if_free(cheapest)),
                Drawn(3, 40, 1, never_again),
            ),
        ),
        Check("many dropouts: gradients", "dropouts", 0.75, gradients_equal(Drawn(0, 24, 9), Drawn(1, 20, 12))),
        Check(
            "many dropouts: the fewest bytes",
            "dropouts",
            1,
            cheap(cheapest, Drawn(0, 14, 6, never_again), Drawn(0, 20, 12, never_again)),
        ),
    ),
    controls=(
        ANSWERS.reference(17),
        ANSWERS.file("what backward reads", 7, below=True),
        ANSWERS.file("all of forward", 4, below=True),
        ANSWERS.file("all cuts of small graphs", 17, below=True),
        Control(
            "rows of backward",
            "def partition(question):\n    return [r['name'] for r in question['rows'] if r['part'] == 'backward']\n",
            0,
        ),
    ),
)
