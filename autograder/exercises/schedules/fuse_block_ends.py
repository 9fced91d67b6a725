"""Exercise 06.4: fuse bias, dropout, residual and LayerNorm at the end of each block, by a schedule."""

from typing import Any

from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.schedule import Scheduled, schedules

OPERATOR = "torch.ops.course_lib.bias_dropout_residual_layer_norm"
NORM, DROPOUT = "torch.nn.LayerNorm", "torch.nn.Dropout"
LAUNCHES = 18  # of one layer: the two fused calls, and all other operators unchanged


def fused(name: str, layers: int = 1, *, training: bool = False, counted: bool = False, **arguments: Any) -> Scheduled:
    """Return a post-LN encoder in which both blocks of every layer end in one call."""
    says = {
        0: "Nothing was found: is the bias an operator of its own, and was the layer traced after that?",
        layers: "Only one block of each layer, or only some layers, ends in the fused call; there are two in each.",
    }
    return Scheduled(
        name,
        {"layers": layers, "eps": 1e-5, **arguments},
        {OPERATOR: 2 * layers, NORM: 0, DROPOUT: layers},
        training=training,
        literals={OPERATOR: (arguments.get("dropout", 0.0), training, arguments.get("eps", 1e-5))},
        says={OPERATOR: says},
        launches=LAUNCHES * layers if counted else None,
    )


EXERCISE = Exercise(
    title="Fuse the ends of the blocks",
    kind=Kind.SCHEDULE,
    entry_point="fuse_block_ends",
    points=15,
    hints=(
        "Four nodes in a row: add, dropout, add, layer_norm. The first is hidden in nn.Linear until you decompose it.",
        "In the pattern, give shape, p, training and eps parameters of their own: what they hold in the model, the "
        "kernel is called with.",
        "For every TransformerLayer: decompose the nn.Linear inside each Projection, trace the layer, find, fuse "
        "with compiler=a function that calls the operator.",
    ),
    checks=(
        Check("one layer", "pattern", 3, schedules(fused("of one layer"))),
        Check("all layers", "several layers", 2, schedules(fused("of two layers", 2, dropout=0.1))),
        Check(
            "probability, mode and eps in training",
            "training mode",
            2,
            schedules(fused("in training mode", dropout=0.25, training=True)),
        ),
        Check("launches", "counted cost", 2, schedules(fused("of one layer", counted=True))),
    ),
)
