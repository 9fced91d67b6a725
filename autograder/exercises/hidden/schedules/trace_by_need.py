"""Hidden checks and controls of exercise 06.2."""

from __future__ import annotations

from dataclasses import replace

from autograder.exercises.schedules import trace_by_need as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

flattened = visible.flattened

MLP = {"feed_forward": "mlp", "dense": "fc"}

REFERENCE = """
def trace_feed_forwards(schedule):
    paths = [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "FeedForward"]
    for path in paths:
        part = schedule[path]
        for name, module in list(part.mod.named_modules()):
            if isinstance(module, nn.Linear):
                part[name].decompose()
        part.trace()
    return schedule
"""
BY_PATH = """
def trace_feed_forwards(schedule):
    for number in range(len(schedule.mod.layers)):
        part = schedule[f"layers.{number}.feed_forward"]
        part["dense"].decompose()
        part["projection.dense"].decompose()
        part.trace()
    return schedule
"""
NOT_SEPARATED = """
def trace_feed_forwards(schedule):
    for path in [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "FeedForward"]:
        schedule[path].trace()
    return schedule
"""
EVERYTHING = """
def trace_feed_forwards(schedule):
    return schedule.trace()
"""
NOT_FLAT = """
def trace_feed_forwards(schedule):
    for path in [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "FeedForward"]:
        schedule[path]["dense"].decompose()
        schedule[path].trace(flatten=False)
    return schedule
"""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other names",
            "renamed models",
            1.2,
            schedules([flattened("with other names", "layers.1.mlp", layers=2, names=MLP)]),
        ),
        Check(
            "gradients",
            "gradients",
            0.8,
            schedules(
                [flattened("with GELU as a module", "layers.0.feed_forward", activation="gelu module")], gradients=True
            ),
        ),
        Check(
            "training mode",
            "training mode",
            1.2,
            schedules(
                [
                    replace(
                        flattened("in training mode", "layers.0.feed_forward", dropout=0.0, residual_first=True),
                        training=True,
                    )
                ]
            ),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("by the paths that we know", BY_PATH, 8, below=True),
        Control("with the biases inside", NOT_SEPARATED, 0),
        Control("the whole model", EVERYTHING, 0),
        Control("one level only", NOT_FLAT, 0),
    ),
)
