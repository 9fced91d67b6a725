"""Hidden checks and controls of exercise 06.6."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.hidden.schedules import fuse_block_ends, replace_attention
from autograder.exercises.schedules.schedule_encoder import ALL, in_both_modes, scheduled
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import schedules

RENAMED = {"dense": "fc", "attention": "self_attention", "feed_forward": "mlp", "attention_norm": "ln"}


ANSWERS = Answers(__name__, after=(replace_attention.ANSWERS, fuse_block_ends.ANSWERS))

HIDDEN = HiddenPart(
    checks=(
        Check(
            "a variant with other names and spellings",
            "unseen variant",
            1,
            schedules(
                scheduled("unseen", ALL, 2, names=RENAMED, activation="gelu module", residual_first=True, heads=1),
                gradients=True,
            ),
        ),
        Check(
            "steps that fit nowhere",
            "unseen variant",
            0.5,
            schedules(
                scheduled("with ReLU", ALL, without="gelu", activation="relu"),
                scheduled("with LayerNorm first", ALL, without="block_ends", norm_first=True),
            ),
        ),
        Check("applied twice", "idempotence", 0.5, schedules(scheduled("scheduled twice", ALL, 2, times=2))),
        Check(
            "training mode of two layers",
            "training mode",
            1,
            schedules(*in_both_modes(layers=2, dropout=0.4)),
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
