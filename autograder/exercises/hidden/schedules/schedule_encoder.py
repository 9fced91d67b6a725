"""Hidden checks and controls of exercise 06.6."""

from __future__ import annotations

from dataclasses import replace

from autograder.exercises.hidden.schedules import fuse_block_ends, replace_attention
from autograder.exercises.schedules import schedule_encoder as visible
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.schedule import schedules

scheduled, ALL, OPERATORS = visible.scheduled, visible.ALL, visible.OPERATORS

RENAMED = {"dense": "fc", "attention": "self_attention", "feed_forward": "mlp", "attention_norm": "ln"}
FROZEN = (
    "A flat trace asks for `self.training` once and writes the answer into the graph: keep the module that asks whole, "
    "with leaf_modules."
)

_ATTENTION = replace_attention.REFERENCE
_BLOCK_ENDS = fuse_block_ends.REFERENCE.split("def fuse_block")[0]
REFERENCE = (
    _ATTENTION.split("def replace_attention")[0]
    + _BLOCK_ENDS
    + """
def bias_gelu(x, bias):
    return F.gelu(x + bias)


def schedule_encoder(schedule, config):
    layers = [p for p, m in schedule.mod.named_modules() if type(m).__name__ == "TransformerLayer"]
    for path in layers:
        layer = schedule[path]
        if isinstance(layer.mod, fx.GraphModule):
            continue
        for name, module in list(layer.mod.named_modules()):
            inside = type(layer.mod.get_submodule(name.rpartition(".")[0])).__name__
            if config["attention"] and type(module).__name__ == "SelfAttention":
                layer[name].replace(OneCall(module))
            wanted = {"Projection": config["block_ends"], "FeedForward": config["gelu"]}
            if isinstance(module, nn.Linear) and wanted.get(inside):
                layer[name].decompose()
        layer.trace(leaf_modules=(OneCall,))
        for key, pattern, operator in (
            ("gelu", bias_gelu, course_lib.kernels.bias_gelu),
            ("block_ends", block_end, kernel),
        ):
            matches = layer.find(pattern)
            if config[key] and len(matches):
                layer.fuse(matches, compiler=operator)
    return schedule
"""
)
BY_PATH = REFERENCE.replace(
    "        if isinstance(layer.mod, fx.GraphModule):\n            continue\n",
    '        layer["projection.dense"].decompose()\n        layer["feed_forward.projection.dense"].decompose()\n',
)
WHATEVER_IS_ASKED = REFERENCE.replace(
    "def schedule_encoder(schedule, config):",
    ("def schedule_encoder(schedule, config):\n    config = dict.fromkeys(config, True)"),
)
FLAT = REFERENCE.replace("leaf_modules=(OneCall,)", "")
ONE_END = REFERENCE.replace('config["block_ends"],', 'config["block_ends"] and name.startswith("projection"),')
NO_QUESTION = REFERENCE.replace("if config[key] and len(matches):", "if config[key]:")

HIDDEN = HiddenPart(
    checks=(
        Check(
            "a variant with other names and spellings",
            "unseen variant",
            1.2,
            schedules(
                [scheduled("unseen", ALL, 2, names=RENAMED, activation="gelu module", residual_first=True, heads=1)],
                gradients=True,
            ),
        ),
        Check(
            "steps that fit nowhere",
            "unseen variant",
            0.8,
            schedules(
                [
                    scheduled("with ReLU", ALL, without="gelu", activation="relu"),
                    scheduled("with LayerNorm first", ALL, without="block_ends", norm_first=True),
                ],
                together=True,
            ),
        ),
        Check("applied twice", "idempotence", 1, schedules([scheduled("scheduled twice", ALL, 2, times=2)])),
        Check(
            "training mode",
            "training mode",
            1,
            schedules(
                [
                    replace(scheduled("in training mode, p = 0", ALL), training=True),
                    replace(
                        scheduled("scheduled in training and then switched to evaluation", ALL, dropout=0.25),
                        switched=True,
                        literals={OPERATORS["attention"]: (0.0,)},
                        reason=FROZEN,
                    ),
                ]
            ),
        ),
    ),
    controls=(
        Control("reference", REFERENCE, 10),
        Control("by the paths that we know, once", BY_PATH, 10, below=True),
        Control("always everything", WHATEVER_IS_ASKED, 10, below=True),
        Control("traces the new attention flat", FLAT, 10, below=True),
        Control("fuses whatever was found", NO_QUESTION, 10, below=True),
    ),
)
