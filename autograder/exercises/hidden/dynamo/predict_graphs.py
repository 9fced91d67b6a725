"""Hidden checks and controls of exercise 07.1."""

from __future__ import annotations

from autograder.exercises.dynamo import predict_graphs as visible
from autograder.host.exercise import Check, Control, HiddenPart

predicts = visible.predicts

REFERENCE = """
BEFORE = {"print": 0, "log": 0, "item": 1, "value_if": 2}
AFTER = {"item": 1, "value_if": 1}
INSIDE = {"compute": 1, "size_if": 1}


def breaks(steps):
    return any(s["do"] in BEFORE or breaks(s.get("body", [])) for s in steps)


def sizes_of(steps):
    sizes, open_size, since = [], 0, 0
    for number, step in enumerate(steps):
        body, do = step.get("body", []), step["do"]
        if do == "repeat" and breaks(body):
            open_size = 0
            sizes += [size for s in steps[since:] if s["do"] == "call" for size in sizes_of(s["body"])]
            break
        if do in BEFORE or breaks(body):
            sizes += [open_size + BEFORE.get(do, 0), *sizes_of(body)]
            open_size, since = AFTER.get(do, 0), number + 1
        else:
            open_size += INSIDE.get(do, 0) + step.get("times", 1) * sum(sizes_of(body))
    return [size for size in [*sizes, open_size] if size]


def count_graphs(steps):
    sizes = sizes_of(steps)
    return {"graphs": len(sizes), "sizes": sizes}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("long programs", "long programs", 1.2, predicts("sizes", visible.long)),
        Check("loops, with and without a break", "loops", 1, predicts("graphs", visible.with_loops)),
        Check("the graphs in programs with loops", "loops", 1, predicts("sizes", visible.with_loops)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("one graph, always", "def count_graphs(steps):\n    return {'graphs': 1, 'sizes': [len(steps)]}\n", 0),
        Control(
            "no loops",
            REFERENCE.replace('if do == "repeat" and', 'if do == "jump" and'),
            6,
        ),
    ),
)
