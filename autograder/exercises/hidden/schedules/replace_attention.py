"""Hidden checks and controls of exercise 06.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.schedules.replace_attention import replaced, switched
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.schedule import schedules

ANSWERS = Answers(__name__)
ASKED = "self.p if self.training else 0.0"
HIDDEN = HiddenPart(
    checks=(
        Check("another number of heads", "odd sizes", 1, schedules(replaced("with one head", heads=1))),
        Check(
            "tied weights", "tied weights", 1, schedules(replaced("with one matrix for query and key", 2, tied=True))
        ),
        Check(
            "evaluation drops nothing",
            "evaluation mode",
            0.5,
            schedules(
                replaced("of two layers with dropout, in evaluation mode", 2, dropout=0.5),
                switched("of two layers, switched to evaluation after it was scheduled", 2, dropout=0.5),
            ),
        ),
        Check(
            "gradients",
            "gradients",
            1,
            schedules(
                replaced("with LayerNorm first", norm_first=True, training=True),
                replaced("with dropout of 0.4 in training", 2, dropout=0.4, training=True),
                gradients=True,
            ),
        ),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.edited(
            "views and permutations",
            8,
            ("(self, hidden, mask):", "(self, hidden, mask):\n        batch, length, _ = hidden.shape"),
            (
                "part(hidden).unflatten(-1, self.sizes).transpose(1, 2)",
                "part(hidden).view(batch, length, *self.sizes).permute(0, 2, 1, 3)",
            ),
            ("context.transpose(1, 2).flatten(2)", "context.permute(0, 2, 1, 3).reshape(batch, length, -1)"),
        ),
        ANSWERS.edited("without the mask", 8, ("attn_mask=mask, ", ""), below=True),
        ANSWERS.edited("drops in evaluation, too", 8, (ASKED, "self.p"), below=True),
        ANSWERS.edited("never drops", 8, (ASKED, "0.0"), below=True),
        ANSWERS.edited(
            "asks for the mode too early",
            8,
            (ASKED, "self.p"),
            ("float(old.dropout.p)", "float(old.dropout.p) * old.training"),
            below=True,
        ),
        ANSWERS.edited("scaled twice", 8, ("(query, key", "(query / self.sizes[1] ** 0.5, key"), below=True),
        ANSWERS.edited(
            "parameters under other names",
            0,
            ("self.query, self.key, self.value =", "self.q, self.k, self.v ="),
            ("in (self.query, self.key, self.value)", "in (self.q, self.k, self.v)"),
        ),
        ANSWERS.edited(
            "the first layer only",
            8,
            ("replace(OneCallAttention(module))", "replace(OneCallAttention(module))\n            break"),
            below=True,
        ),
    ),
)
