"""Hidden checks and controls of exercise 01.2."""

import functools
from collections.abc import Iterator

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.programs.bert_formulas import attention
from autograder.exercises.transformer import multi_head_attention as visible
from autograder.host import comparison
from autograder.host.checks.function_checks import agrees, leaves_inputs_alone
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.callable import Case, require_outputs
from autograder.host.kinds.module import ModuleAnswer


def _heads(answer: ModuleAnswer, draw: Draw) -> None:
    """Check one head, heads of a prime size, and heads of size 1."""
    options = visible.formula_options(answer, draw, "head counts")
    for hidden_size, heads in ((8, 1), (21, 3), (6, 6), (26, 2)):
        module, state = visible.built(answer, draw, hidden_size, heads)
        formula = attention(state, heads, **options)
        label = f"with {heads} heads of size {hidden_size // heads}"
        case = Case((draw.normal(2, 7, hidden_size),), label=label)
        require_outputs(module.call(case), case, formula, visible.NAMES)


def _equivariant(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that, without positions, permuted tokens give the results in the permuted order."""
    options = visible.formula_options(answer, draw, "order of tokens")
    module, state = visible.built(answer, draw, 12, 2, torch.float64)
    hidden = draw.normal(2, 9, 12, dtype=torch.float64)
    order = torch.tensor(draw.sample(range(9), 9))
    plain = visible.only(module.call(Case((hidden,))), hidden)
    moved = visible.only(module.call(Case((hidden[:, order],))), hidden)
    if options:  # with a mistake that another check counts the order of the tokens may matter
        case = Case((hidden[:, order],), label="for tokens in another order")
        require_outputs(module.call(case), case, attention(state, 2, **options), visible.NAMES)
        return
    other = hidden.clone()
    other[:, 0] += 1
    changed = visible.only(module.call(Case((other,))), hidden)
    if float((changed - plain)[:, 1:].abs().max()) < 1e-6:
        raise CheckFailedError("No token hears of a change in another one.")
    comparison.require_rounded(
        moved,
        plain[:, order],
        dtype=torch.float64,
        scale=1 + float(plain.abs().max()),
        what="the result for tokens in another order",
    )


def _forms(draw: Draw, dtype: torch.dtype) -> Iterator[Case]:
    for shape in ((1, 1, 12), (3, 127, 12), (5, 4, 12)):
        yield Case((draw.normal(*shape, dtype=dtype),), label=f"with an input of shape {shape} in {dtype}")
    yield Case((draw.normal(3, 5, 12, dtype=dtype).transpose(0, 1),), label="with an input of other strides")
    yield Case(
        (draw.normal(2, 5, 12, dtype=dtype), draw.keep(2, 2, 5, 5) | torch.eye(5, dtype=torch.bool)),
        label="with a mask of its own for each head",
    )


def _sizes(answer: ModuleAnswer, draw: Draw) -> None:
    options = visible.formula_options(answer, draw, "odd sizes")
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        module, state = visible.built(answer, draw, 12, 2, dtype)
        forms = functools.partial(_forms, dtype=dtype)
        agrees(attention(state, 2, **options), forms, visible.NAMES)(module, draw)
    leaves_inputs_alone(attention(state, 2, **options), forms, visible.NAMES)(module, draw)


def _gradients(answer: ModuleAnswer, draw: Draw) -> None:
    for hidden_size, heads in ((7, 1), (15, 3)):
        visible.gradients_right(answer, draw, hidden_size, heads, training=True)


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("one head, prime sizes, many heads", "head counts", 1.5, _heads),
        Check("tokens in another order", "order of tokens", 1.5, _equivariant),
        Check("sizes, strides, precisions and masks for each head", "odd sizes", 1, _sizes),
        Check("gradients at other sizes", "gradients", 1, _gradients),
    ),
    controls=(
        ANSWERS.reference(12),
        ANSWERS.file("scores by hand", 12),
        ANSWERS.edited(
            "dropout in training", 11, ("key, value, mask)", "key, value, mask, 0.1 if self.training else 0.0)")
        ),
        ANSWERS.edited(
            "parameters only",
            1,
            ("query, key, value = (self.split(", "return hidden\n        query, key, value = (self.split("),
        ),
    ),
)
