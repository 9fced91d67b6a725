"""Exercise 06.1: find linear layers by name in a hierarchy, and add their bias by a separate operator."""

from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.checks.drawn_encoder import drawn_names
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import ScheduleAnswer, Scheduled, schedules

LINEAR, SEPARATED = "torch.nn.Linear", "torch.nn.functional.linear"


def separated(name: str, wanted: str, each: int, layers: int = 1, **arguments: Any) -> Scheduled:
    """Return an encoder in which `each` of the six linear layers per encoder layer are named `wanted`."""
    total = each * layers
    says = {
        0: "No linear layer was decomposed: look for modules whose path ends in the name, at any depth.",
        each: "Only one layer was changed: walk all of `schedule.mod.named_modules()`.",
        layers: "Only one linear layer in each layer was changed; the name occurs more often.",
        6 * layers: "Every linear layer was decomposed; only those of the given name should be.",
    }
    says.pop(total, None)
    counts = {SEPARATED: total, LINEAR: 6 * layers - total}
    model = {"layers": layers, **arguments}
    return Scheduled(name, model, counts, question=(wanted,), says={SEPARATED: says}, layer=wanted)


def of_every_layer(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check a model of two layers, together with one whose parts have drawn names, so that no list of paths fits."""
    names = drawn_names(draw, "layers", "dense", "feed_forward")
    name = names["dense"]
    schedules(
        separated("of two layers, name 'dense'", "dense", 3, 2),
        separated(f"of two layers, name {name!r}", name, 3, 2, names=names),
        together=True,
    )(answer, draw)


EXERCISE = Exercise(
    title="Separate biases",
    kind=Kind.SCHEDULE,
    entry_point="separate_biases",
    points=6,
    masked=PASSES,
    hints=(
        "`schedule.mod` is the module itself, so `named_modules()` gives every path with its module.",
        'The last name of a path is `path.rpartition(".")[2]`; `schedule[path]` takes a path with dots.',
        "Loop over a list of the paths, keep those whose module is an nn.Linear of that name, and call decompose().",
    ),
    checks=(
        Check("one name, one layer", "navigation", 1.5, schedules(separated("of one layer, name 'query'", "query", 1))),
        Check(
            "every layer that has the name, and no other",
            "navigation",
            1.5,
            of_every_layer,
        ),
        Check(
            "a part of that name that is no linear layer",
            "look-alikes",
            0.5,
            schedules(separated("in which attention is called 'dense', too", "dense", 3, names={"attention": "dense"})),
        ),
    ),
)
