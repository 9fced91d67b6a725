"""Hidden checks and controls of exercise 06.1."""

from __future__ import annotations

from autograder.exercises.schedules import separate_biases as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

separated = visible.separated

OTHER_NAMES = {"dense": "out", "query": "layout"}  # one name is the end of another
CONTAINERS = {"attention": "dense"}  # a name that a module has which is no linear layer

REFERENCE = """
def separate_biases(schedule, name):
    for path, part in list(schedule.mod.named_modules()):
        if isinstance(part, nn.Linear) and path.rpartition(".")[2] == name:
            schedule[path].decompose()
    return schedule
"""
ENDS_WITH = """
def separate_biases(schedule, name):
    for path, part in list(schedule.mod.named_modules()):
        if isinstance(part, nn.Linear) and path.endswith(name):
            schedule[path].decompose()
    return schedule
"""
FIRST_LAYER = """
def separate_biases(schedule, name):
    for path, part in list(schedule["layers.0"].mod.named_modules()):
        if isinstance(part, nn.Linear) and path.rpartition(".")[2] == name:
            schedule["layers.0"][path].decompose()
    return schedule
"""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other names",
            "renamed models",
            1.2,
            schedules([separated("with other names, 'out'", "out", 3, names=OTHER_NAMES)]),
        ),
        Check(
            "a container of the same name",
            "look-alikes",
            0.6,
            schedules([separated("in which a container is called 'dense', too", "dense", 3, names=CONTAINERS)]),
        ),
        Check(
            "deeper stacks, with gradients",
            "gradients",
            0.6,
            schedules([separated("of four layers, name 'value'", "value", 1, 4)], gradients=True),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 6),
        Control("any path that ends so", ENDS_WITH, 6, below=True),
        Control("the first layer only", FIRST_LAYER, 6, below=True),
    ),
)
