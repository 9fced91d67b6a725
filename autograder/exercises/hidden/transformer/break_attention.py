"""Hidden checks and controls of exercise 01.6."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.exercises.transformer import break_attention as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.counterexample import Trial, disproves


def _many(draw: Draw) -> Sequence[Trial]:
    """More heads than anybody tries by hand, and both slips."""
    texts = (visible.PROGRAMS, visible.with_back_only(visible.PROGRAMS))
    return [visible.trial(draw.integer(8, 17), text, "more heads") for text in texts]


REFERENCE = """
def break_attention(heads):
    hidden = torch.randn(2, heads, 4 * heads)
    mask = torch.ones(2, 1, 1, heads, dtype=torch.bool)
    mask[..., -1] = False
    return hidden, heads, mask
"""

HIDDEN = HiddenPart(
    checks=(Check("more heads", "more heads", 1.6, disproves(_many)),),
    controls=(
        Control("reference", REFERENCE, 4),
        Control(
            "a length that is given away by an error",
            REFERENCE.replace("(2, heads,", "(2, heads + 1,").replace("1, heads, d", "1, heads + 1, d"),
            1.4,
        ),
        Control("equal tokens", REFERENCE.replace("torch.randn(", "torch.ones("), 0),
        Control("nothing hidden", REFERENCE.replace("mask[..., -1] = False", "pass"), 0),
        Control(
            "four heads, whatever is asked", REFERENCE.replace("heads):\n", "heads):\n    heads = 4\n"), 4, below=True
        ),
    ),
    equivalent={
        "line 3: 4 -> 5": "the size of a head is free",
        "line 5: -1 -> 1": "which token is hidden is free",
        "line 5: 1 -> 2": "which token is hidden is free",
    },
)
