"""Hidden checks and controls of exercise 06.6."""

from dataclasses import replace

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.hidden.schedules import fuse_block_ends, replace_attention
from autograder.exercises.schedules.schedule_encoder import ALL, OPERATORS, scheduled
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import schedules

RENAMED = {"dense": "fc", "attention": "self_attention", "feed_forward": "mlp", "attention_norm": "ln"}
FROZEN = (
    "A flat trace asks for `self.training` once and writes the answer into the graph: keep the module that asks whole, "
    "with leaf_modules."
)


ANSWERS = Answers(__name__, after=(replace_attention.ANSWERS, fuse_block_ends.ANSWERS))

HIDDEN = HiddenPart(
    checks=(
        Check(
            "a variant with other names and spellings",
            "unseen variant",
            1.2,
            schedules(
                scheduled("unseen", ALL, 2, names=RENAMED, activation="gelu module", residual_first=True, heads=1),
                gradients=True,
            ),
        ),
        Check(
            "steps that fit nowhere",
            "unseen variant",
            0.8,
            schedules(
                scheduled("with ReLU", ALL, without="gelu", activation="relu"),
                scheduled("with LayerNorm first", ALL, without="block_ends", norm_first=True),
            ),
        ),
        Check("applied twice", "idempotence", 1, schedules(scheduled("scheduled twice", ALL, 2, times=2))),
        Check(
            "training mode",
            "training mode",
            1,
            schedules(
                replace(scheduled("in training mode, p = 0.25", ALL, dropout=0.25), training=True),
                replace(
                    scheduled("scheduled in training and then switched to evaluation", ALL, dropout=0.25),
                    switched=True,
                    literals={OPERATORS["attention"]: (0.0,)},
                    reason=FROZEN,
                ),
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited(
            "by the paths that we know, once",
            10,
            ("schedule[path][f'{name}.{inner}'].decompose()", "pass"),
            (
                "schedule[path].trace(leaf_modules",
                "schedule[path]['projection.dense'].decompose()\n"
                "            schedule[path]['feed_forward.projection.dense'].decompose()\n"
                "            schedule[path].trace(leaf_modules",
            ),
            below=True,
        ),
        ANSWERS.edited(
            "always everything",
            10,
            ("    if config['attention']:", "    config = dict.fromkeys(config, True)\n    if config['attention']:"),
            below=True,
        ),
        ANSWERS.edited("traces the new attention flat", 10, ("leaf_modules=(OneCallAttention,)", ""), below=True),
        ANSWERS.edited(
            "fuses whatever was found", 10, ("if len(matches):\n        part", "if True:\n        part"), below=True
        ),
    ),
)
