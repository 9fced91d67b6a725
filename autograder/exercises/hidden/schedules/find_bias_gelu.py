"""Hidden checks and controls of exercise 06.3."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.find_bias_gelu import found
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

RENAMED = {"dense": "wide", "feed_forward": "mlp", "activation": "intermediate_gelu_fn"}
CALLED_GELU = {"activation": "gelu"}


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "renamed models",
            "renamed models",
            1,
            schedules(found("with other names", 2, layers=2, activation="gelu by name", names=RENAMED)),
        ),
        Check(
            "activations that are not GELU stay",
            "look-alikes",
            1,
            schedules(
                found("with nn.ReLU", 0, activation="relu module"),
                found("with a class of its own for ReLU", 0, activation="own relu"),
                found("with F.gelu and its bias sum", 1),
                together=True,
            ),
        ),
        Check(
            "a module of torch.nn is known by what it computes",
            "look-alikes",
            1,
            schedules(
                found("with nn.GELU, called gelu", 1, activation="gelu module", names=CALLED_GELU),
                found("with tanh GELU, called gelu", 0, activation="tanh module", names=CALLED_GELU),
                together=True,
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        Control(
            "by function only",
            "def find_bias_gelu(part):\n    return part.find(lambda x, bias: F.gelu(x + bias))\n",
            8,
            below=True,
        ),
        ANSWERS.edited(
            "by the class that we know",
            7.5,
            ("'.*gelu.*'", "'.*'"),
            ("not type(module).__module__.startswith('torch.nn')", "type(module).__name__ == 'FastGelu'"),
            below=True,
        ),
        ANSWERS.file("names are enough", 8, below=True),
        ANSWERS.file("any activation", 8, below=True),
        ANSWERS.file("the first place only", 8, below=True),
    ),
    right_here={"off by one in a hundred": "the graph is written anew when the matches are fused, after the answer"},
)
