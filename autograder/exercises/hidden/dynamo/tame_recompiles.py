"""Hidden checks and controls of exercise 07.3."""

from collections.abc import Mapping
from typing import Any

import torch

from autograder.exercises.dynamo.tame_recompiles import REFERENCES, at_lengths, plans
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import captures
from autograder.host.kinds.misconceptions import Misconception, wrong_values


def plan_truth(question: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sizes to make dynamic, and the number of graphs that the sweep then needs."""
    calls, looped = question["calls"], question["looped"]
    places = [[i, d] for i, sizes in enumerate(calls[0]) for d in range(len(sizes))]
    varies = [p for p in places if len({call[p[0]][p[1]] for call in calls}) > 1]
    fixed = [p for p in varies if p in looped]
    graphs = len({tuple(call[i][d] for i, d in fixed) for call in calls})
    return {"open": [p for p in varies if p not in looped], "graphs": graphs}


PLAN_MISCONCEPTIONS = (
    Misconception(
        lambda q: [[i, d] for i, sizes in enumerate(q["calls"][0]) for d in range(len(sizes))],
        "Every dimension was opened, as dynamic=True does; those that never change, or are looped over, stay fixed.",
    ),
    Misconception(
        lambda q: plan_truth({**q, "looped": []})["open"],
        "A dimension was opened that the program loops over: the loop is unrolled, so its length is part of the graph.",
    ),
    Misconception(
        lambda q: len(q["calls"]), "A graph was counted for each call; calls with equal fixed sizes share one."
    ),
    Misconception(
        lambda q: plan_truth({**q, "looped": plan_truth({**q, "looped": []})["open"]})["graphs"],
        "A graph was counted for each combination of sizes; sizes that are open need none of their own.",
    ),
)


def known_plan(question: Mapping[str, Any], part: str) -> Known:
    """Return the right value of one part of a plan, and the known wrong ones."""
    return {"right": plan_truth(question)[part], "wrong": wrong_values(question, PLAN_MISCONCEPTIONS)}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other lengths, even and odd",
            "other lengths",
            1.5,
            captures(*(at_lengths(name, (3, 8, 64, 127, 129)) for name in REFERENCES)),
        ),
        Check(
            "double precision, with gradients",
            "gradients",
            1,
            captures(
                *(at_lengths(name, (6, 9), dtype=torch.float64) for name in ("pair_means", "decayed_sum")),
                gradients=True,
            ),
        ),
        Check("long sweeps: what stays open", "what to open", 1, plans("open", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
        Check("long sweeps: how many graphs", "how many graphs", 0.5, plans("graphs", (15, 20, 25, 2, 3, 2, 3, 4, 30))),
    ),
    controls=(ANSWERS.reference(10), ANSWERS.file("as they were", 0)),
)
