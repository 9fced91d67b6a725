"""Hidden checks and controls of exercise 06.4."""

from __future__ import annotations

from autograder.exercises.schedules import fuse_block_ends as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import Scheduled, schedules

fused, OPERATOR = visible.fused, visible.OPERATOR

RENAMED = {"dense": "out", "attention_norm": "first_norm", "feed_forward": "mlp"}
PRE_NORM = Scheduled(
    "with norm_first",
    {"norm_first": True},
    {OPERATOR: 0},
    reason="There LayerNorm comes before the block, and the sum is read again as the next residual.",
)

REFERENCE = """
def block_end(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):
    return F.layer_norm(F.dropout(x + bias, p, training) + residual, shape, weight, layer_norm_bias, eps)


def kernel(x, bias, residual, shape, weight, layer_norm_bias, p, training, eps):
    return course_lib.kernels.bias_dropout_residual_layer_norm(
        x, bias, residual, weight, layer_norm_bias, p, training, eps
    )


def fuse_block_ends(schedule):
    layers = [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "TransformerLayer"]
    for path in layers:
        layer = schedule[path]
        for name, module in list(layer.mod.named_modules()):
            inside = layer.mod.get_submodule(name.rpartition(".")[0])
            if isinstance(module, nn.Linear) and type(inside).__name__ == "Projection":
                layer[name].decompose()
        matches = layer.trace().find(block_end)
        if len(matches):
            layer.fuse(matches, compiler=kernel)
    return schedule
"""
ALWAYS_TRAINING = REFERENCE.replace("layer_norm_bias, p, training, eps\n    )", "layer_norm_bias, p, True, eps\n    )")
FIRST_LAYER = REFERENCE.replace("for path in layers:", "for path in layers[:1]:")
KNOWN_NAMES = REFERENCE.replace(
    'isinstance(module, nn.Linear) and type(inside).__name__ == "Projection"',
    'name.endswith("projection.dense")',
)
OWN_EPS = REFERENCE.replace("p, training, eps\n    )", "p, training, 1e-12\n    )")
EAGER = REFERENCE.replace("compiler=kernel", 'compiler="eager"')

HIDDEN = HiddenPart(
    checks=(
        Check("renamed models", "renamed models", 1, schedules([fused("with other names", 2, names=RENAMED)])),
        Check("the residual first", "spellings", 1, schedules([fused("with residual + x", residual_first=True)])),
        Check("another eps", "literals", 0.8, schedules([fused("with eps 0.1", eps=0.1)])),
        Check(
            "gradients in training",
            "gradients",
            1,
            schedules([fused("in training mode, p = 0", 2, training=True)], gradients=True),
        ),
        Check(
            "LayerNorm before the block",
            "look-alikes",
            1.2,
            schedules([PRE_NORM, fused("of one layer", activation="gelu module")], together=True),
        ),
        Check("launches of three layers", "counted cost", 1, schedules([fused("of three layers", 3, counted=True)])),
    ),
    controls=(
        Control("reference", REFERENCE, 15),
        Control("always in training", ALWAYS_TRAINING, 15, below=True),
        Control("the first layer only", FIRST_LAYER, 15, below=True),
        Control("by the names that we know", KNOWN_NAMES, 15, below=True),
        Control("an eps of its own", OWN_EPS, 15, below=True),
        Control("a module that is no call", EAGER, 0),
    ),
)
