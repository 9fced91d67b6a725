"""Hidden checks and controls of exercise 13.2."""

from dataclasses import replace

import torch

from autograder.exercises.attention.online_softmax import Stream, drawn, shifted, streams_right
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart

MORE_LATER = 40.0  # added to every second block


def _sizes(draw: Draw) -> list[Stream]:
    streams = drawn(draw, 1, 1, (7,)), drawn(draw, 3, 5, (1, 1, 1)), drawn(draw, 127, 3, (17, 17, 3))
    return [shifted(draw, stream) for stream in streams]


def _double(draw: Draw) -> list[Stream]:
    sizes = (8,) * 6, (24, 24)
    return [shifted(draw, drawn(draw, 4, 6, each, dtype=torch.float64)) for each in sizes]


def _up_and_down(draw: Draw) -> list[Stream]:
    """Return a stream in which the largest score rises and falls."""
    stream = drawn(draw, 4, 3, (5,) * 6)
    for number, block in enumerate(stream.scores.split(5, 1)):
        block += MORE_LATER * (number % 2 - 0.5)
    return [shifted(draw, replace(stream, label="with a maximum that rises and falls"))]


ANSWERS = Answers(__name__)
AVERAGED = """
def streaming():
    def first(scores, values):
        return torch.softmax(scores, -1) @ values, torch.ones_like(scores[:, :1])

    def step(scores, values, summed, blocks):
        return summed + torch.softmax(scores, -1) @ values, blocks + 1

    return {"first": first, "step": step, "finish": lambda summed, blocks: summed / blocks}
"""
NEW = "new = torch.maximum(largest, scores.amax(1, keepdim=True))"
BASE = "base = torch.where(new == -torch.inf, 0.0, new)"
TOTAL = "total = total * factor + weights.sum(1, keepdim=True)"
MIXED = "mixed * factor + weights @ values"

HIDDEN = HiddenPart(
    equivalent={
        "0.0 -> 1.0": "where nothing was seen yet, any number may be taken away",
        "nothing * values[:1] -> nothing / values[:1]": "both are 0 for values that are not",
    },
    checks=(
        Check("blocks of other sizes", "other sizes", 1.5, streams_right(_sizes)),
        Check("double precision", "precision", 0.5, streams_right(_double)),
        Check("a maximum that rises and falls", "large scores", 2, streams_right(_up_and_down)),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("a result and its logarithm", 12),
        ANSWERS.file("one tensor", 12),
        ANSWERS.file("merges two states", 12),
        ANSWERS.edited("a lowest base", 12, (BASE, "base = new.clamp(min=torch.finfo(new.dtype).min)")),
        ANSWERS.edited("einsum", 12, (MIXED, "mixed * factor + torch.einsum('rk,kw->rw', weights, values)")),
        ANSWERS.edited("in place", 12, ("weights = torch.exp(scores - base)", "weights = (scores - base).exp_()")),
        ANSWERS.edited("addmm", 12, (MIXED, "torch.addmm(mixed * factor, weights, values)")),
        ANSWERS.edited("a maximum by max", 12, ("scores.amax(1, keepdim=True)", "scores.max(1, keepdim=True).values")),
        ANSWERS.file("everything is kept", 0),
        Control("blocks are averaged", AVERAGED, 0),
        ANSWERS.edited(
            "the first block's maximum",
            3.5,
            (NEW, "new = torch.where(largest == -torch.inf, scores.amax(1, keepdim=True), largest)"),
        ),
        ANSWERS.edited("never rescaled", 0, ("torch.exp(largest - base)", "torch.ones_like(base)")),
        ANSWERS.edited("the sum is not rescaled", 0, (MIXED, "mixed + weights @ values")),
        ANSWERS.edited("the denominator is not rescaled", 0, (TOTAL, "total = total + weights.sum(1, keepdim=True)")),
        ANSWERS.edited("one maximum for all rows", 10, ("scores.amax(1, keepdim=True)", "scores.amax()")),
        ANSWERS.edited("upside down", 0, ("torch.exp(largest - base)", "torch.exp(base - largest)")),
        ANSWERS.edited("not divided", 0, ("mixed / total", "mixed")),
        ANSWERS.edited("no maximum", 3.5, (NEW, "new = torch.zeros_like(largest)")),
        ANSWERS.edited("nan after a masked block", 9, (BASE, "base = new")),
        ANSWERS.edited("the block's own maximum", 9.5, (NEW, "new = scores.amax(1, keepdim=True)")),
        ANSWERS.edited(
            "a product of three dimensions", 10, (MIXED, "mixed * factor + (weights[:, :, None] * values).sum(1)")
        ),
        ANSWERS.edited(
            "single precision", 11.5, ("weights @ values", "(weights.float() @ values.float()).to(values.dtype)")
        ),
        ANSWERS.edited(
            "keeps the last block",
            0,
            ("return (new, total, mixed * factor", "return (new, weights.sum(1, keepdim=True), mixed * factor"),
        ),
    ),
)
