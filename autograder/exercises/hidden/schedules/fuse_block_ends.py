"""Hidden checks and controls of exercise 06.4."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.fuse_block_ends import fused, norm_first
from autograder.host.checks.drawn_encoder import drawn_names
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import ScheduleAnswer, schedules


def _renamed(answer: ScheduleAnswer, draw: Draw) -> None:
    """Check a model whose parts have drawn names."""
    names = drawn_names(draw, "dense", "attention_norm", "feed_forward")
    schedules(fused("with other names", 2, names=names))(answer, draw)


ANSWERS = Answers(__name__)
CALL = "residual, weight, layer_norm_bias, p, training, eps)"
HIDDEN = HiddenPart(
    checks=(
        Check("renamed models", "renamed models", 1.5, _renamed),
        Check("the residual first", "spellings", 0.5, schedules(fused("with residual + x", residual_first=True))),
        Check("another eps, another width", "literals", 1.5, schedules(fused("with eps 0.2", eps=0.2, width=24))),
        Check(
            "gradients in training",
            "gradients",
            0.5,
            schedules(
                fused("in training mode, p = 0", 2, training=True, dropout=0.0),
                fused("in training mode, p = 0.4", 2, training=True, dropout=0.4),
                gradients=True,
            ),
        ),
        Check(
            "blocks of two layers that begin with LayerNorm",
            "look-alikes",
            1.5,
            schedules(
                norm_first(layers=2, activation="relu"), fused("of one layer", activation="gelu module"), together=True
            ),
        ),
        Check(
            "launches of three layers",
            "counted cost",
            1,
            schedules(fused("of three layers of another width", 3, counted=True, width=24)),
            speed=True,
        ),
    ),
    controls=(
        ANSWERS.reference(15),
        ANSWERS.edited(
            "with an interpreter, whose progress bar would start a thread",
            15,
            (
                "    return schedule\n",
                "    torch.fx.Interpreter(torch.fx.symbolic_trace(lambda x: x + 1)).run(torch.ones(1))\n"
                "    return schedule\n",
            ),
        ),
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
        ANSWERS.edited(
            "a width of its own",
            11,
            ("def block_end(x, bias, residual, shape,", "def block_end(x, bias, residual,"),
            ("def one_call(x, bias, residual, shape,", "def one_call(x, bias, residual,"),
            ("+ residual, shape, weight", "+ residual, (16,), weight"),
        ),
        ANSWERS.edited("fuses whatever was found", 13, ("if len(matches):", "if True:")),
        ANSWERS.edited("a module that is no call", 0, ("compiler=one_call", "compiler='eager'")),
    ),
)
