"""Hidden checks and controls of exercise 06.1."""

from dataclasses import replace

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.separate_biases import separated
from autograder.host.checks.drawn_encoder import drawn_names
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import ScheduleAnswer, schedules


def _renamed(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check a model in which a drawn name is the end of another one."""
    name = drawn_names(draw, "dense")["dense"]
    names = {"dense": name, "query": f"re{name}"}
    schedules(separated(f"with other names, {name!r}", name, 3, names=names))(answer, draw)


def _container(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check a model in which a module that is no linear layer has the same drawn name."""
    name = drawn_names(draw, "dense")["dense"]
    names = {"dense": name, "attention": name}
    schedules(separated(f"in which a container is called {name!r}, too", name, 3, names=names))(answer, draw)


def _deeper(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check gradients of a deep model and of one in training, both with drawn names."""
    names = drawn_names(draw, "layers", "value", "dense")
    value, dense = names["value"], names["dense"]
    schedules(
        separated(f"of four layers, name {value!r}", value, 1, 4, names=names),
        replace(separated(f"in training mode, name {dense!r}", dense, 3, dropout=0.3, names=names), training=True),
        gradients=True,
    )(answer, draw)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("other names", "renamed models", 1, _renamed),
        Check("a container of the same name", "look-alikes", 1, _container),
        Check("deeper stacks, with gradients", "gradients", 0.5, _deeper),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.file("as many, but others", 3, below=True),
        ANSWERS.edited("any path that ends so", 6, ("path.split('.')[-1] == name", "path.endswith(name)"), below=True),
        ANSWERS.edited(
            "the first layer only",
            6,
            ("schedule.mod.named_modules()", "schedule.mod.layers[0].named_modules()"),
            ("schedule[path]", "schedule['layers.0'][path]"),
            below=True,
        ),
    ),
)
