"""Hidden checks and controls of exercise 06.3."""

from __future__ import annotations

from autograder.exercises.schedules.find_bias_gelu import found
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

RENAMED = {"dense": "wide", "feed_forward": "mlp", "activation": "intermediate_gelu_fn"}
CALLED_GELU = {"activation": "gelu"}

REFERENCE = """
def find_bias_gelu(part):
    exact = part.find(lambda x, bias: F.gelu(x + bias))
    named = part.find(lambda x, bias: call_module(".*gelu.*", x + bias))
    return Matches((*exact, *(match for match in named if own_class(part, match))))

def own_class(part, match):
    module = part.mod.get_submodule(match.nodes[-1].target)
    return not type(module).__module__.startswith("torch.nn")
"""
EXACT = """
def find_bias_gelu(part):
    return part.find(lambda x, bias: F.gelu(x + bias))
"""
NAMES_ARE_ENOUGH = """
def find_bias_gelu(part):
    exact = part.find(lambda x, bias: F.gelu(x + bias))
    return exact if len(exact) else part.find(lambda x, bias: call_module(".*gelu.*", x + bias))
"""
ANY_ACTIVATION = """
def find_bias_gelu(part):
    exact = part.find(lambda x, bias: F.gelu(x + bias))
    return exact if len(exact) else part.find(lambda x, bias: call_module(".*act.*|.*gelu.*", x + bias))
"""
FIRST = """
def find_bias_gelu(part):
    return Matches(find_all(part).found[:1])

def find_all(part):
    exact = part.find(lambda x, bias: F.gelu(x + bias))
    return exact if len(exact) else part.find(lambda x, bias: call_module(".*gelu.*", x + bias))
"""

HIDDEN = HiddenPart(
    checks=(
        Check(
            "renamed models",
            "renamed models",
            1.2,
            schedules([found("with other names", 2, layers=2, activation="own gelu", names=RENAMED)]),
        ),
        Check(
            "activations that are not GELU stay",
            "look-alikes",
            1.2,
            schedules(
                [
                    found("with ReLU", 0, activation="relu"),
                    found("with a class of its own for ReLU", 0, activation="own relu"),
                    found("with F.gelu and its bias sum", 1),
                ],
                together=True,
            ),
        ),
        Check(
            "a module of torch.nn is known by what it computes",
            "look-alikes",
            0.8,
            schedules(
                [
                    found("with nn.GELU, called gelu", 1, activation="gelu module", names=CALLED_GELU),
                    found("with tanh GELU, called gelu", 0, activation="tanh module", names=CALLED_GELU),
                ],
                together=True,
            ),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 8),
        Control("by function only", EXACT, 8, below=True),
        Control("names are enough", NAMES_ARE_ENOUGH, 8, below=True),
        Control("any activation", ANY_ACTIVATION, 8, below=True),
        Control("the first place only", FIRST, 8, below=True),
    ),
    right_here={
        "off by one in a hundred": "the graph is written anew when the matches are fused, after the answer",
    },
)
