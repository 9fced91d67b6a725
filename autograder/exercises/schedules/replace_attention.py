"""Exercise 06.5: replace every SelfAttention by an attention that calls one operator."""

from dataclasses import replace
from typing import Any

from autograder.exercises.programs.library_passes import PASSES
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import Scheduled, schedules
from autograder.host.kinds.wiring import Wiring, input_named, output_of

OPERATOR = "torch.nn.functional.scaled_dot_product_attention"
SOFTMAX, LINEAR = "torch.softmax", "torch.nn.Linear"


MODE = "Ask for `self.training` in forward, each time: a model changes its mode after it was scheduled."
ARGUMENTS = ("query", "key", "value", "attn_mask", "dropout_p")


def wired(layers: int) -> Wiring:
    """Return where query, key, value and mask of each layer's call come from."""
    roles = ("query", "key", "value")
    calls = [
        {role: output_of(f"layers.{i}.attention.{role}") for role in roles} | {"attn_mask": input_named("mask")}
        for i in range(layers)
    ]
    return Wiring(ARGUMENTS, calls)


def replaced(name: str, layers: int = 1, *, training: bool = False, **arguments: Any) -> Scheduled:
    """Return an encoder whose attention is one call per layer, with the layer's own weights."""
    says = {
        0: "The model still computes attention step by step.",
        1: "Only one layer was replaced: walk all of `schedule.mod.named_modules()`.",
    }
    says.pop(layers, None)
    return Scheduled(
        name,
        {"layers": layers, **arguments},
        {OPERATOR: layers, SOFTMAX: 0, LINEAR: range(3 * layers, 6 * layers + 1)},  # query, key, value may be merged
        training=training,
        literals={OPERATOR: (arguments.get("dropout", 0.0) if training else 0.0,)},
        says={OPERATOR: says},
        wiring={OPERATOR: wired(layers)},
    )


def switched(name: str, layers: int = 1, **arguments: Any) -> Scheduled:
    """Return an encoder that is scheduled in training mode, and is in evaluation mode afterwards."""
    return replace(replaced(name, layers, **arguments), switched=True, reason=MODE)


EXERCISE = Exercise(
    title="Replace attention",
    kind=Kind.SCHEDULE,
    entry_point="replace_attention",
    points=8,
    masked=PASSES,
    hints=(
        "Your module takes the old one and keeps its three linear layers, under the names they had.",
        "scaled_dot_product_attention scales by itself; its mask is added to the scores if it is no bool.",
        "Dropout is a number of the call: pass dropout_p=p while training, and 0.0 otherwise, always as a float.",
    ),
    checks=(
        Check("one layer, one call", "values", 1.5, schedules(replaced("of one layer"))),
        Check("every layer", "several layers", 1, schedules(replaced("of two layers", 2))),
        Check(
            "dropout in training",
            "training mode",
            1,
            schedules(replaced("in training mode", dropout=0.25, training=True)),
        ),
        Check(
            "none in evaluation, also after a change of mode",
            "evaluation mode",
            1,
            schedules(
                replaced("with dropout, in evaluation mode", dropout=0.25),
                switched("scheduled in training and then switched to evaluation", dropout=0.25),
            ),
        ),
    ),
)
