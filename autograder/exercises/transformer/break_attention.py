"""Exercise 01.6: find an input for which attention with a discarded permute is wrong without an error."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.kinds.counterexample import Trial, disproves
from autograder.host.kinds.returned_values import Values

PROGRAMS = """
import math
import torch


def heads_of(hidden, heads):
    batch, length, size = hidden.shape
    return hidden.view(batch, length, heads, size // heads)


def attend(parts, mask):
    scores = parts @ parts.transpose(-2, -1) / math.sqrt(parts.shape[-1])
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ parts


def reference(hidden, heads, mask):
    context = attend(heads_of(hidden, heads).permute(0, 2, 1, 3), mask)
    return context.permute(0, 2, 1, 3).reshape(hidden.shape)


def right(hidden, heads, mask):
    alone = [attend(part, mask[:, 0]) for part in hidden.chunk(heads, -1)]
    return torch.cat(alone, -1)


def wrong(hidden, heads, mask):
    parts = heads_of(hidden, heads)
    parts.permute(0, 2, 1, 3)
    context = attend(parts, mask)
    context.permute(0, 2, 1, 3)
    return context.reshape(hidden.shape)
"""
BACK_ONLY = """
    parts = heads_of(hidden, heads).permute(0, 2, 1, 3)
    context = attend(parts, mask)
    context.permute(0, 2, 1, 3)
"""


def with_back_only(text: str) -> str:
    """Return the programs in which only the second permute is discarded."""
    start, end = text.index("    parts = heads_of", text.index("def wrong")), text.rindex("    return")
    return text[:start] + BACK_ONLY.lstrip("\n") + text[end:]


def accepts(heads: int) -> Callable[[Values], str]:
    """Return a sentence about why attention with `heads` heads cannot take this input; empty if it can."""

    def run(inputs: Values) -> str:
        if len(inputs.arguments) != 3:
            return "Return three things: hidden, the number of heads, and the mask."
        return _unfit(*inputs.arguments, heads)

    return run


def _unfit(hidden: Any, given: Any, mask: Any, heads: int) -> str:
    if type(given) is not int or given != heads:
        return f"The number of heads is {given!r}; it has to be the {heads} of the question."
    if not isinstance(hidden, torch.Tensor) or hidden.dim() != 3 or hidden.dtype != torch.float32:
        return "hidden has to be a float32 tensor of shape (batch, length, hidden size)."
    batch, length, size = hidden.shape
    if not hidden.numel() or size % heads:
        return f"hidden has shape {tuple(hidden.shape)}; its last axis has to be cut into {heads} heads."
    if not isinstance(mask, torch.Tensor) or mask.dtype != torch.bool or mask.shape != (batch, 1, 1, length):
        return f"The mask has to be boolean and of shape {(batch, 1, 1, length)}, for this hidden."
    if bool(mask.all()):
        return "The mask hides nothing; hide at least one token, as padding does."
    return "" if bool(mask.any(-1).all()) else "The mask hides every token of a sequence; leave at least one to see."


def _explain(inputs: Values) -> str:
    hidden = inputs.arguments[0]
    if torch.equal(hidden, hidden[:, :1].expand_as(hidden)):
        return "All tokens of a sequence are equal, so it makes no difference who listens to whom."
    return ""


def _fails(inputs: Values) -> str:
    hidden, heads, _ = inputs.arguments
    return (
        f"Without the permute the last axis of the scores counts the {heads} heads, and your mask hides some of "
        f"{hidden.shape[1]} tokens."
    )


def trial(heads: int, text: str, name: str) -> Trial:
    """Return a question about one wrong version with `heads` heads."""
    return Trial(
        name,
        text,
        question=heads,
        accepts=accepts(heads),
        explain=_explain,
        fails=_fails,
        max_elements=1 << 14,
        wrong="attention with a discarded permute",
        right="the right attention",
    )


def _trials(draw: Draw) -> Sequence[Trial]:
    return [trial(heads, PROGRAMS, f"{heads} heads") for heads in draw.sample(range(2, 8), 3)]


def _back(draw: Draw) -> Sequence[Trial]:
    heads = draw.integer(2, 6)
    return [trial(heads, with_back_only(PROGRAMS), f"{heads} heads, where only the second permute is discarded")]


EXERCISE = Exercise(
    title="Break attention without a sound",
    kind=Kind.COUNTEREXAMPLE,
    entry_point="break_attention",
    points=4,
    masked=("course_lib.models", "course_lib.training"),
    wall_s=60,
    checks=(
        Check("both permutes discarded: wrong, and in silence", "both", 1.5, disproves(_trials)),
        Check("one permute discarded: wrong, and in silence", "one", 0.5, disproves(_back)),
    ),
    hints=(
        "Without the permute, which two axes are multiplied with each other, and which shape do the scores have?",
        "The mask has one number for each token on the last axis of the scores. Which lengths fit there by accident?",
        "With as many tokens as heads every shape fits. Then draw random tokens, so that values differ.",
    ),
)
