"""Hidden checks and controls of exercise 06.1."""

from dataclasses import replace

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.separate_biases import separated
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import schedules

OTHER_NAMES = {"dense": "out", "query": "layout"}  # one name is the suffix of another
CONTAINERS = {"attention": "dense"}  # the name of a module that is not a linear layer


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other names",
            "renamed models",
            1.2,
            schedules(separated("with other names, 'out'", "out", 3, names=OTHER_NAMES)),
        ),
        Check(
            "a container of the same name",
            "look-alikes",
            0.6,
            schedules(separated("in which a container is called 'dense', too", "dense", 3, names=CONTAINERS)),
        ),
        Check(
            "deeper stacks, with gradients",
            "gradients",
            0.6,
            schedules(
                separated("of four layers, name 'value'", "value", 1, 4),
                replace(separated("in training mode, name 'dense'", "dense", 3, dropout=0.3), training=True),
                gradients=True,
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(6),
        ANSWERS.file("as many, but others", 2.2, below=True),
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
