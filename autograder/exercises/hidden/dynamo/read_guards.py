"""Hidden checks and controls of exercise 07.4."""

from __future__ import annotations

from autograder.exercises.dynamo import read_guards as visible
from autograder.host.exercise import Check, Control, HiddenPart

explains = visible.explains

REFERENCE = """
import operator

COMPARE = {"==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge}


def size(side, call):
    if isinstance(side, int):
        return side
    sizes = call[side[0]]["size"]
    return sizes[side[1]] if side[1] < len(sizes) else -1


def holds(guard, call):
    if guard["kind"] == "SHAPE_ENV":
        return COMPARE[guard["op"]](size(guard["left"], call), size(guard["right"], call))
    value = call[guard["name"]]
    if guard["kind"] == "TYPE_MATCH":
        return type(value).__name__ == guard["type"]
    if guard["kind"] == "EQUALS_MATCH":
        return type(value) is type(guard["value"]) and value == guard["value"]
    fits = len(value["size"]) == len(guard["size"])
    fits = fits and all(g in (None, s) for g, s in zip(guard["size"], value["size"]))
    return fits and value["dtype"] == guard["dtype"] and value["requires_grad"] == guard["requires_grad"]


def explain_recompile(question):
    call, failed = question["call"], []
    for number, guards in enumerate(question["entries"]):
        first = next((i for i, guard in enumerate(guards) if not holds(guard, call)), None)
        if first is None:
            return {"entry": number, "failed": failed, "opens": []}
        failed.append(first)
    opens = []
    for guard in question["entries"][-1]:
        if guard["kind"] == "TENSOR_MATCH":
            now = call[guard["name"]]["size"]
            if len(now) == len(guard["size"]):
                opens += [[guard["name"], d] for d, old in enumerate(guard["size"]) if old not in (None, now[d])]
    return {"entry": None, "failed": failed, "opens": opens}
"""

HIDDEN = HiddenPart(
    checks=(
        Check("caches of several entries", "several entries", 1.2, explains("entry", (3, 4, 5), 40)),
        Check("the reason of each entry", "several entries", 1.2, explains("failed", (3, 4, 5), 40)),
        Check("open sizes in larger caches", "open sizes", 0.8, explains("opens", (2, 3), 60)),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control(
            "always compiles anew",
            "def explain_recompile(question):\n"
            "    return {'entry': None, 'failed': [0] * len(question['entries']), 'opens': []}\n",
            0,
        ),
    ),
    equivalent={},
)
