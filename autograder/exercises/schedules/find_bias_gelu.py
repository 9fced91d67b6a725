"""Exercise 06.3: find every bias addition followed by GELU, by its pattern and by its name."""

from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import Scheduled, schedules

OPERATOR = "torch.ops.course_lib.bias_gelu"
LEAVES = ("FastGelu", "FastRelu", "Smooth")
BY_NAME_TOO = "The activation is a module of a class of its own, called gelu: find it with call_module(regex, ...)."
OTHER_ACTIVATIONS = {
    "tanh module": "nn.GELU(approximate='tanh') computes something else than F.gelu, whatever it is called: a name "
    "says nothing about a module of torch.nn, so leave it to the pattern.",
    "relu": "F.relu is not GELU: the pattern or the name has to fit GELU only.",
    "relu module": "nn.ReLU is not GELU: the pattern or the name has to fit GELU only.",
    "own relu": "FastRelu is not GELU: the name of the module tells which activation it is.",
}
"""Messages if the fused operator takes the place of another activation."""


def found(name: str, fused: int, **arguments: Any) -> Scheduled:
    """Return a model in which the fused operator must occur `fused` times after the schedule."""
    counts = {OPERATOR: fused}
    activation = arguments.get("activation", "")
    own = activation in ("own gelu", "gelu by name")
    says = {OPERATOR: {0: BY_NAME_TOO} if own else {} if fused else {1: OTHER_ACTIVATIONS.get(activation, "")}}
    return Scheduled(name, arguments, counts, leaves=LEAVES, operator="bias_gelu", says=says)


EXERCISE = Exercise(
    title="Find bias and GELU",
    kind=Kind.SCHEDULE,
    entry_point="find_bias_gelu",
    points=8,
    masked=PASSES,
    hints=(
        "Two searches: one for what is computed, F.gelu(x + bias), one for what a module is called.",
        'call_module(regex, value) stands for a module by its name; the whole last name has to fit, so ".*gelu.*".',
        "Put the matches of both into one Matches((*exact, *named)), and drop a named one whose module is of torch.nn.",
    ),
    checks=(
        Check("the function, in two layers", "patterns", 1.5, schedules(found("with F.gelu", 2, layers=2))),
        Check("the module nn.GELU", "patterns", 1.5, schedules(found("with nn.GELU", 1, activation="gelu module"))),
        Check(
            "a class of its own, called fast_gelu",
            "names",
            1,
            schedules(found("with FastGelu", 1, activation="own gelu", names={"activation": "fast_gelu"})),
        ),
        Check(
            "another activation stays, whatever it is called",
            "look-alikes",
            1,
            schedules(
                found("with ReLU", 0, activation="relu"),
                found("with tanh GELU, called gelu_new", 0, activation="tanh module", names={"activation": "gelu_new"}),
                found("with F.gelu", 1),
                together=True,
            ),
        ),
    ),
)
