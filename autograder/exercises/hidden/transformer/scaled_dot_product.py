"""Hidden checks and controls of exercise 01.1."""

import functools
import math
from collections.abc import Iterator

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.transformer.scaled_dot_product import (
    NAMES,
    agrees_with_formula,
    attendable,
    attention,
    consistent,
    formula_of,
    inputs,
    mistakes_of,
)
from autograder.host import comparison
from autograder.host.checks.function_checks import agrees, keeps_calls_apart, leaves_inputs_alone, remembers_nothing
from autograder.host.checks.known_mistakes import options_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Control, HiddenPart
from autograder.host.kinds.callable import CallableAnswer, Case, require_outputs


def _odd(draw: Draw) -> Iterator[Case]:
    for queries, keys, size in ((1, 1, 1), (1, 127, 3), (129, 3, 5)):
        q, k, v = inputs(draw, queries, keys, size, batch=1, heads=draw.choice((1, 2)))
        yield Case(
            (q, k, v + 2),  # the mean of 127 values around 0 may be so small that rounding is large beside it
            label=f"with {queries} queries, {keys} keys, head size {size}",
        )
    q, k, v = inputs(draw, 7, 9, 4)
    wide = [t.transpose(1, 2).contiguous().transpose(1, 2) for t in (q, k, v)]
    yield Case(tuple(wide), label="with non-contiguous inputs")
    yield Case((q[:1].expand(2, 3, 7, 4), k, v), label="with an expanded query")
    yield Case(inputs(draw, 3, 4, 8, batch=0), label="with an empty batch")


def _precisions(draw: Draw) -> Iterator[Case]:
    for dtype in (torch.bfloat16, torch.float64, torch.float32):
        yield Case(inputs(draw, 6, 8, 16, dtype=dtype), label=f"in {str(dtype).removeprefix('torch.')}")
    q, k, v = inputs(draw, 4, 6, 8)
    v[0, 0, 1, 2] = torch.nan  # reaches only one number of every query of its head
    yield Case((q, k, v), label="with a NaN in one value")


def _large_scores(draw: Draw) -> Case:
    # With one-hot rows every score is 400 or 0. So the result is exact for any order of summation, and exp(400)
    # overflows unless the maximum is subtracted.
    _, _, v = inputs(draw, 6, 6, 16)
    rows = (torch.eye(6, 16) * 40).expand(2, 3, 6, 16)
    return Case((rows.contiguous(), rows.flip(-2).contiguous(), v), label="with scores of 400")


def _precise(answer: CallableAnswer, draw: Draw) -> None:
    agrees_with_formula("precision", _precisions)(answer, draw)
    case = _large_scores(draw)
    reply = answer.call(case)
    if any(bool(torch.isnan(output).any()) for output in reply.outputs):
        raise CheckFailedError(
            "With scores of 400 the result is NaN, since exp(400) overflows. Subtract the largest score of each row "
            "before exp, as torch.softmax does."
        )
    require_outputs(reply, case, formula_of(answer, draw, "precision"), NAMES)


def _fully_masked_row(answer: CallableAnswer, draw: Draw) -> None:
    q, k, v = inputs(draw, 4, 5, 8)
    mask, known = attendable(draw, 2, 1, 4, 5), options_of(mistakes_of(answer, draw) or ())
    row = draw.integer(0, 3)
    mask[:, :, row] = False
    sent = ~mask if known.get("masks") == "inverted" else mask  # a mistake that the check of masks counts
    reply = answer.call(Case((q, k, v, sent), label="with a row that may attend to nothing"))
    if any(bool(torch.isnan(o).any()) for o in reply.outputs):
        raise CheckFailedError(
            "A row that may attend to nothing gives NaN; expected zeros in probabilities and context."
        )
    case = Case((q, k, v, mask), label="with a row that may attend to nothing")
    if len(reply.outputs) == 2 and reply.outputs[1].shape == (2, 3, 4, 5) and bool(reply.outputs[1][:, :, row].any()):
        raise CheckFailedError(
            "A row that may attend to nothing still gets probabilities above 0: a very negative score is equal for "
            "all its keys. Fill the probabilities of hidden positions with 0 after softmax."
        )
    if known:
        formula = functools.partial(attention, **(known | {"masks": "as given"}))
        require_outputs(reply, case, formula, NAMES)
    else:
        consistent(reply, case)


def _dropout(answer: CallableAnswer, draw: Draw) -> None:
    q, k, v = inputs(draw, 64, 64, 8)
    exact = Case((q, k, v, None, 0.0), label="with dropout_p=0")
    reply = answer.call(exact)
    require_outputs(reply, exact, formula_of(answer, draw, "dropout"), NAMES)
    full = reply.outputs[1]
    p = draw.choice((0.1, 0.25, 0.5))
    case = Case((q, k, v), {"dropout_p": p})
    first, second = _two_masks(answer, case, full, p, v)
    if bool((first == second).all()):
        raise CheckFailedError("Two calls dropped the same positions; draw a new mask in each call.")


def _two_masks(
    answer: CallableAnswer, case: Case, full: torch.Tensor, p: float, value: torch.Tensor
) -> list[torch.Tensor]:
    masks = []
    for _ in range(2):
        reply = answer.call(case)
        if len(reply.outputs) != 2:
            raise CheckFailedError("With dropout the function returns another number of outputs than without.")
        context, dropped = reply.outputs
        comparison.require_form(context, value[..., : full.shape[-2], :], "context, with dropout,")
        comparison.require_form(dropped, full, "probabilities, with dropout,")
        kept = dropped != 0
        if bool(kept.all()) and torch.allclose(dropped, full, rtol=1e-4, atol=1e-7):
            raise CheckFailedError(_nothing_dropped(context, full @ value))
        if not torch.allclose(dropped[kept], full[kept] / (1 - p), rtol=1e-4, atol=1e-7):
            raise CheckFailedError(
                "Kept probabilities must be scaled by 1/(1 - dropout_p), so that their expected sum stays 1."
            )
        rate, spread = 1 - float(kept.double().mean()), math.sqrt(p * (1 - p) / kept.numel())
        if abs(rate - p) > 6 * spread:
            raise CheckFailedError(f"dropout_p={p} dropped a share of {rate:.3f} of the probabilities.")
        if not torch.allclose(context, dropped @ value, rtol=1e-3, atol=1e-4):
            raise CheckFailedError(
                "context does not use the probabilities that were returned: apply dropout once, before the product."
            )
        masks.append(kept)
    return masks


def _nothing_dropped(context: torch.Tensor, plain: torch.Tensor) -> str:
    if torch.allclose(context, plain, rtol=1e-3, atol=1e-4):
        return "Nothing is dropped. Apply F.dropout(probabilities, dropout_p) before the product with the values."
    return (
        "The probabilities that were returned are those before dropout, and the context is made of those after it. "
        "Apply dropout once, then return the probabilities that made the context."
    )


def _three(draw: Draw) -> Iterator[Case]:
    for _ in range(3):
        yield Case((*inputs(draw, 4, 6, 8), attendable(draw, 2, 1, 4, 6)), label="called several times in a row")


def _any_input(answer: CallableAnswer, draw: Draw) -> None:
    """Check odd sizes and strides, and that calls touch neither their inputs nor each other."""
    formula = formula_of(answer, draw, "odd sizes")
    for check in (leaves_inputs_alone, remembers_nothing, keeps_calls_apart):
        check(formula, _three, NAMES)(answer, draw)
    agrees(formula, _odd, NAMES)(answer, draw)


ANSWERS = Answers(__name__)


def _ending(name: str, marks: float, change: str) -> Control:
    """Return the reference with a change of its result before the return."""
    kept = "context = probabilities @ value"
    result = "return (probabilities @ value, probabilities)"
    return ANSWERS.edited(name, marks, (result, f"{kept}\n    {change}\n    return (context, probabilities)"))


HIDDEN = HiddenPart(
    checks=(
        Check("odd sizes and strides, an empty batch, and calls in a row", "odd sizes", 1, _any_input),
        Check("every precision, and large scores", "precision", 1, _precise),
        Check("a row that may attend to nothing", "masked rows", 0.5, _fully_masked_row),
        Check("dropout", "dropout", 1, _dropout),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("no scale", 7, (" / math.sqrt(query.shape[-1])", "")),
        ANSWERS.edited(
            "an inverted mask",
            7,
            ("if mask is not None:\n        scores", "if mask is not None:\n        mask = ~mask\n        scores"),
        ),
        _ending("reordered sum", 10, "context = probabilities.flip(-1) @ value.flip(-2)"),
        _ending("swapped operands", 0, "context, probabilities = context.mT, probabilities.mT"),
        _ending("rows that sum to 0.9", 0, "probabilities = probabilities * 0.9; context = probabilities @ value"),
        _ending("NaN everywhere", 0, "context, probabilities = context * math.nan, probabilities * math.nan"),
        _ending(
            "uniform rows",
            0,
            "probabilities = torch.full_like(probabilities, 1 / key.shape[-2]); context = probabilities @ value",
        ),
    ),
    equivalent={
        "-2 -> 2": "the last dimension but one of four is number 2",
        "torch.finfo(scores.dtype) -> torch.finfo()": "any number far below all scores will do",
        "F.dropout(probabilities, dropout_p, training=True) -> F.dropout(probabilities, dropout_p)": "the default",
    },
)
