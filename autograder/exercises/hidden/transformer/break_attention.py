"""Hidden checks and controls of exercise 01.6."""

from collections.abc import Sequence

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.transformer import break_attention as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.counterexample import Trial, disproves


def _many(draw: Draw) -> Sequence[Trial]:
    """Return questions with many heads about both mistakes."""
    texts = (visible.PROGRAMS, visible.with_back_only(visible.PROGRAMS))
    return [visible.trial(draw.integer(8, 17), text, "more heads") for text in texts]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(Check("more heads", "more heads", 2, disproves(_many)),),
    controls=(
        ANSWERS.reference(4),
        ANSWERS.edited(
            "a length that is given away by an error",
            1.5,
            ("(2, heads,", "(2, heads + 1,"),
            ("1, heads, d", "1, heads + 1, d"),
        ),
        ANSWERS.edited("a list", 4, ("return (hidden, heads, mask)", "return [hidden, heads, mask]")),
        ANSWERS.edited("equal tokens", 0, ("torch.randn(", "torch.ones(")),
        ANSWERS.edited("nothing hidden", 0, ("mask[..., -1] = False", "pass")),
        ANSWERS.edited("four heads, whatever is asked", 4, ("hidden = ", "heads = 4\n    hidden = "), below=True),
    ),
    equivalent={
        "4 -> 5": "the size of a head is free",
        "-1 -> 1": "which token is hidden is free",
        "mask[..., -1] = False: 1 -> 2": "which token is hidden is free",
    },
)
