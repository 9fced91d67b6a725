"""Exercise 01.1: scaled dot-product attention, by hand."""

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from autograder.host import comparison
from autograder.host.checks.function_checks import Run, agrees, gradients_agree
from autograder.host.checks.known_mistakes import Mistake, mistakes_made, options_of, require_none_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case, Reference, Reply, require_outputs
from autograder.host.session import AnswerFailedError
from course_lib.models.transformer import attention_probabilities

NAMES = ("context", "probabilities")


def reference(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return context and probabilities without dropout.

    query (batch, heads, q, size), key and value (batch, heads, k, size), mask (broadcastable to batch, heads, q, k),
    True = may attend. Returns context (batch, heads, q, size) and probabilities (batch, heads, q, k); rows without
    an allowed key are zero.
    """
    return attention(query, key, value, mask)


def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None = None,
    dropout_p: float = 0.0,
    *,
    power: float = -0.5,
    dim: int = -1,
    masks: str = "as given",
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return context and probabilities without dropout; the options give the wrong versions.

    The scores are multiplied by the head size to the `power`, and softmax runs over `dim`. The library's models compute
    the probabilities, which are not there for an answer, so this function is not an answer.
    """
    inverted = None if mask is None else ~mask
    inside = {"as given": mask, "ignored": None, "after softmax": None, "inverted": inverted}[masks]
    scale = query.shape[-1] ** power
    if dim == -1:
        probabilities = _shares(query, key, inside, scale)
    else:
        probabilities = _shares(key, query, None if inside is None else inside.mT, scale).mT
    if masks == "after softmax" and mask is not None:
        probabilities = torch.where(mask, probabilities, 0.0)
    return torch.einsum("bhqk,bhkd->bhqd", probabilities, value), probabilities


def _shares(query: torch.Tensor, key: torch.Tensor, mask: torch.Tensor | None, scale: float) -> torch.Tensor:
    """Return the share of each key for each query, (batch, heads, q, k): zeros where there is no key to attend to."""
    if mask is None:
        return attention_probabilities(query * scale, key, head_size=1)
    some = mask.any(-1, keepdim=True)  # a row without a key hides none in softmax: its gradient would be NaN
    hidden = torch.zeros(mask.shape, dtype=query.dtype).masked_fill(some & ~mask, -math.inf)
    return torch.where(some, attention_probabilities(query * scale, key, hidden, head_size=1), 0.0)


MISTAKES = (
    Mistake(
        {"power": 0.0},
        "The scores are not scaled: there is no scale at all; divide query @ key.transpose(-1, -2) by sqrt(head_size) "
        "before softmax.",
        "scores",
    ),
    Mistake(
        {"power": -1.0},
        "The scores are divided by head_size, so the scale is 1/head_size; divide them by its square root.",
        "scores",
    ),
    Mistake({"power": 0.5}, "The scores are multiplied by sqrt(head_size); divide them by it.", "scores"),
    Mistake(
        {"dim": -2},
        "Softmax runs over the queries, so columns sum to 1; it should run over the keys, the last dimension.",
        "scores",
    ),
    Mistake(
        {"masks": "inverted"},
        "The mask is the wrong way round: True means that a position may be attended to. Every hidden position must "
        "get probability 0.",
        "masks",
    ),
    Mistake(
        {"masks": "after softmax"},
        "The mask is applied after softmax only, so rows do not sum to 1: set the scores of hidden positions to minus "
        "infinity before softmax.",
        "masks",
    ),
    Mistake({"masks": "ignored"}, "The mask changes nothing; give every hidden position probability 0.", "masks"),
)


def mistakes_of(answer: CallableAnswer, draw: Draw) -> tuple[Mistake, ...] | None:
    """Return the known mistakes of an answer, found with one call; None if its result is an unknown one."""
    shared = draw.shared("one call")
    mask = attendable(shared, 2, 1, 5, 6)
    rows = torch.arange(5)
    mask[..., rows, rows], mask[..., rows, rows + 1] = True, False  # each row and column holds both
    mask[..., 0, 5], mask[..., 1, 0] = True, False
    case = Case((*inputs(shared, 5, 6, 7), mask))
    try:
        reply = answer.call(case)
    except AnswerFailedError as error:
        if error.fatal:
            raise
        return None

    def gives(options: Mapping[str, Any]) -> bool:
        try:
            require_outputs(reply, case, functools.partial(attention, **options), NAMES)
        except CheckFailedError:
            return False
        return True

    return mistakes_made(gives, MISTAKES)


def formula_of(answer: CallableAnswer, draw: Draw, category: str) -> Reference:
    """Return the formula that the answer has to compute: with its known mistakes, unless `category` counts one.

    Raises `CheckFailedError` for a mistake that is counted here.
    """
    found = mistakes_of(answer, draw) or ()
    require_none_of(category, found)
    return functools.partial(attention, **options_of(found))


def agrees_with_formula(category: str, cases: Callable[[Draw], Iterator[Case]]) -> Run:
    """Return a check of `category` that context and probabilities equal the formula in every case."""

    def run(answer: CallableAnswer, draw: Draw) -> None:
        agrees(formula_of(answer, draw, category), cases, NAMES)(answer, draw)

    return run


def inputs(
    draw: Draw, q: int, k: int, size: int, *, batch: int = 2, heads: int = 3, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return random query, key and value."""
    return (
        draw.normal(batch, heads, q, size, dtype=dtype),
        draw.normal(batch, heads, k, size, dtype=dtype),
        draw.normal(batch, heads, k, size, dtype=dtype),
    )


def attendable(draw: Draw, *shape: int) -> torch.Tensor:
    """Return a random mask in which every row has at least one allowed key."""
    mask = draw.keep(*shape)
    mask[..., 0] = True
    return mask


def consistent(reply: Reply, case: Case) -> tuple[torch.Tensor, torch.Tensor]:
    """Check the properties of attention that do not depend on its scale; return context and probabilities.

    Rows sum to 1, larger scores get larger probabilities, and context is the weighted sum of values. So a check on
    masks passes with a wrong scale, but fails for zeros or uniform rows.
    """
    query, key, value, mask = (*case.args, None)[:4]
    context, probabilities = _two(reply)
    scores = query.double() @ key.double().transpose(-1, -2)
    comparison.require_form(probabilities, scores.to(query.dtype), "probabilities")
    allowed = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask.expand(scores.shape)
    shares = probabilities.double()
    if bool((shares[~allowed] != 0).any()):
        raise CheckFailedError(
            f"A masked position has probability {float(shares[~allowed].abs().max()):.2g}; expected exactly 0. "
            "In the mask True means: may attend."
        )
    if not bool(((shares >= 0) & (shares <= 1)).all()):
        raise CheckFailedError(f"probabilities hold numbers outside 0 to 1{case.where}; softmax gives none.")
    sums, ones = shares.sum(-1).to(query.dtype), allowed.any(-1).double()
    told = "the sum of a row of probabilities"
    comparison.require_rounded(sums, ones, dtype=query.dtype, scale=1.0, what=told, where=case.where)
    _require_monotone(shares, scores, allowed)
    comparison.require_rounded(
        context,
        shares @ value.double(),
        dtype=query.dtype,
        scale=float(value.double().abs().max()) if value.numel() else 1.0,
        what="context, compared with probabilities @ value,",
        where=case.where,
    )
    return context, probabilities


def _two(reply: Reply) -> tuple[torch.Tensor, torch.Tensor]:
    if len(reply.outputs) != 2:
        raise CheckFailedError(
            f"The function returned {len(reply.outputs)} output(s); return the two tensors (context, probabilities)."
        )
    return reply.outputs[0], reply.outputs[1]


def _require_monotone(shares: torch.Tensor, scores: torch.Tensor, allowed: torch.Tensor) -> None:
    """Check that the logarithms of probabilities are the scores times one positive factor plus a constant per row."""
    logs, weights = torch.log(shares.clamp_min(1e-300)), (allowed & (shares > 0)).double()
    count = weights.sum(-1, keepdim=True).clamp_min(1)
    logs = (logs - (logs * weights).sum(-1, keepdim=True) / count) * weights
    scores = (scores - (scores * weights).sum(-1, keepdim=True) / count) * weights
    slope = float((logs * scores).sum() / (scores * scores).sum().clamp_min(1e-30))
    spread = float(scores.abs().max())
    if slope <= 0 or float((logs - slope * scores).abs().max()) > 1e-2 * max(slope * spread, 1.0):
        raise CheckFailedError(
            "probabilities are not a softmax of the scores query @ key.transpose(-1, -2), at any scale."
        )


def _small(draw: Draw) -> Iterator[Case]:
    yield Case(inputs(draw, 4, 6, 8), label="with 4 queries, 6 keys, head size 8")
    yield Case(inputs(draw, 5, 5, 16), label="with 5 queries, 5 keys, head size 16")
    yield Case((*inputs(draw, 6, 7, 8), attendable(draw, 2, 1, 6, 7)), label="with a mask of shape (2, 1, 6, 7)")


def _scale_is_inverse_root(answer: CallableAnswer, draw: Draw) -> None:
    known = mistakes_of(answer, draw)
    for size in (4, 64):
        case = Case(inputs(draw, 3, 5, size), label=f"at head size {size}")
        if known is not None:
            require_outputs(answer.call(case), case, formula_of(answer, draw, "scores"), NAMES)
            continue
        _, probabilities = consistent(answer.call(case), case)
        query, key, _ = case.args
        scores, logs = (query @ key.transpose(-1, -2)).double(), torch.log(probabilities)
        found = float(((logs.max(-1).values - logs.min(-1).values) / (scores.amax(-1) - scores.amin(-1))).median())
        if not abs(found * math.sqrt(size) - 1) <= 1e-3:  # NaN is not right either
            raise CheckFailedError(
                f"At head size {size} the scores are scaled by {found:.4g}; "
                f"expected 1/sqrt(head_size) = {1 / math.sqrt(size):.4g}."
            )


def _masks_hide(answer: CallableAnswer, draw: Draw) -> None:
    known = mistakes_of(answer, draw)
    q, k, v = inputs(draw, 5, 7, 8)
    masks: list[Any] = [attendable(draw, 2, 1, 1, 7), attendable(draw, 2, 3, 5, 7)]
    for mask in masks:
        case = Case((q, k, v, mask), label=f"with a mask of shape {tuple(mask.shape)}")
        if known:
            require_outputs(answer.call(case), case, formula_of(answer, draw, "masks"), NAMES)
        else:
            consistent(answer.call(case), case)


def _gradient_cases(draw: Draw) -> Iterator[Case]:
    yield Case(inputs(draw, 3, 4, 8), label="without a mask")
    yield Case((*inputs(draw, 3, 4, 8), attendable(draw, 2, 3, 3, 4)), label="with a mask")


def _gradients(answer: CallableAnswer, draw: Draw) -> None:
    formula = formula_of(answer, draw, "gradients")
    gradients_agree(formula, _gradient_cases, NAMES, ("query", "key", "value"))(answer, draw)


READY_MADE = (
    "torch.nn.functional:multi_head_attention_forward",
    "torch.nn.modules.activation:Multihead",
    "torch.nn.modules.transformer",
    "transformers.models.bert.modeling_bert",
)
EXERCISE = Exercise(
    title="Scaled dot-product attention",
    kind=Kind.CALLABLE,
    entry_point="scaled_dot_product",
    points=10,
    masked=("course_lib.models", "course_lib.training"),
    ready_made=READY_MADE,
    wall_s=30,
    hints=(
        "Write the shapes of query, key and value on paper first. Which two of their dimensions must meet in a matrix "
        "product, so that one number comes out for each pair of a query and a key?",
        "Five steps: scores, scale, mask, softmax over the keys, weighted sum of the values. A position that is masked "
        "must have probability 0, which a very negative score gives, except in a row that is masked throughout.",
        "`scores.masked_fill(~mask, lowest)` before softmax and a second `masked_fill` with 0.0 after it. The scale is "
        "one division by `math.sqrt` of the last dimension, and dropout acts on the probabilities.",
    ),
    checks=(
        Check(
            "context and probabilities equal the fp64 reference", "scores", 1.5, agrees_with_formula("scores", _small)
        ),
        Check("scores are scaled by 1/sqrt(head_size)", "scores", 1.5, _scale_is_inverse_root),
        Check("masked positions get probability 0", "masks", 3, _masks_hide),
        Check("gradients reach query, key and value", "gradients", 0.5, _gradients),
    ),
)
