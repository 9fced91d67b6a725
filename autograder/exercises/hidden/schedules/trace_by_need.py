"""Hidden checks and controls of exercise 06.2."""

from dataclasses import replace

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.trace_by_need import flattened
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

MLP = {"feed_forward": "mlp", "dense": "fc"}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "other names",
            "renamed models",
            1,
            schedules(flattened("with other names", "layers.1.mlp", layers=2, names=MLP)),
        ),
        Check(
            "gradients",
            "gradients",
            1,
            schedules(
                flattened("with GELU as a module", "layers.0.feed_forward", activation="gelu module"), gradients=True
            ),
        ),
        Check(
            "gradients in training mode",
            "training mode",
            1,
            schedules(
                replace(
                    flattened("in training mode", "layers.0.feed_forward", dropout=0.3, residual_first=True),
                    training=True,
                ),
                gradients=True,
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.file("by the paths that we know", 8, below=True),
        ANSWERS.edited("with the biases inside", 0, ("schedule[path][name].decompose()", "pass")),
        ANSWERS.edited(
            "traced first",
            0,
            ("            schedule[path].trace()\n", ""),
            ("            for name,", "            schedule[path].trace()\n            for name,"),
        ),
        Control("the whole model", "def trace_feed_forwards(schedule):\n    return schedule.trace()\n", 0),
        ANSWERS.file("one level only", 0),
    ),
)
