"""Hidden checks and controls of exercise 08.3."""

from __future__ import annotations

from autograder.exercises.aot_autograd import read_joint as visible
from autograder.host.exercise import Check, Control, HiddenPart

joint_right = visible.joint_right

REFERENCE = """
POINTWISE = ("mul", "add", "tanh", "exp", "relu")


def read_joint(rows):
    forward = {row["name"]: row for row in rows if row["part"] == "forward"}
    backward = [row for row in rows if row["part"] == "backward"]
    why = {}
    for name in forward:
        readers = [row["name"] for row in backward if name in row["args"]]
        if readers:
            why[name] = readers[0]
    inputs = {row["name"] for row in rows if row["op"] == "input"}
    again = []
    for name in why:
        there = inputs | (set(why) - {name})
        if forward[name]["op"] in POINTWISE and set(forward[name]["args"]) <= there:
            again.append(name)
    total = sum(forward[name]["bytes"] for name in why)
    return {"saved": list(why), "bytes": total, "why": why, "again": again}
"""
LARGE = [(20, 20), (30, 12), (12, 30), (25, 25)]

HIDDEN = HiddenPart(
    checks=(
        Check("large graphs: what is saved", "large graphs", 0.8, joint_right("saved", LARGE)),
        Check("large graphs: bytes", "large graphs", 0.4, joint_right("bytes", LARGE)),
        Check("large graphs: readers", "large graphs", 0.4, joint_right("why", LARGE)),
        Check("large graphs: computed again", "large graphs", 0.8, joint_right("again", LARGE)),
    ),
    controls=(Control("reference", REFERENCE, 6),),
)
