"""Hidden checks and controls of exercise 06.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.fuse_block_ends import OPERATOR, fused
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import Scheduled, schedules

RENAMED = {"dense": "out", "attention_norm": "first_norm", "feed_forward": "mlp"}
PRE_NORM = Scheduled(
    "with norm_first",
    {"norm_first": True},
    {OPERATOR: 0},
    reason="There LayerNorm comes before the block, and the sum is read again as the next residual.",
)


ANSWERS = Answers(__name__)
CALL = "residual, weight, layer_norm_bias, p, training, eps)"
HIDDEN = HiddenPart(
    checks=(
        Check("renamed models", "renamed models", 1.6, schedules(fused("with other names", 2, names=RENAMED))),
        Check("the residual first", "spellings", 0.6, schedules(fused("with residual + x", residual_first=True))),
        Check("another eps", "literals", 1.6, schedules(fused("with eps 0.1", eps=0.1))),
        Check(
            "gradients in training",
            "gradients",
            0.4,
            schedules(
                fused("in training mode, p = 0", 2, training=True),
                fused("in training mode, p = 0.4", 2, training=True, dropout=0.4),
                gradients=True,
            ),
        ),
        Check(
            "LayerNorm before the block",
            "look-alikes",
            1,
            schedules(PRE_NORM, fused("of one layer", activation="gelu module"), together=True),
        ),
        Check(
            "launches of three layers",
            "counted cost",
            1,
            schedules(fused("of three layers", 3, counted=True)),
            speed=True,
        ),
    ),
    controls=(
        ANSWERS.reference(15),
        ANSWERS.edited("always in training", 15, (CALL, CALL.replace("training", "True")), below=True),
        ANSWERS.edited(
            "the first layer only",
            15,
            ("list(schedule.mod.named_modules())", "[('layers.0', schedule.mod.layers[0])]"),
            below=True,
        ),
        ANSWERS.edited(
            "by the names that we know", 15, ("isinstance(module, nn.Linear)", "inner == 'dense'"), below=True
        ),
        ANSWERS.edited("an eps of its own", 15, (CALL, CALL.replace("eps", "1e-12")), below=True),
        ANSWERS.edited("a module that is no call", 0, ("compiler=one_call", "compiler='eager'")),
    ),
)
