"""On request: fuse the separate operators of attention onto `torch.nn.functional.scaled_dot_product_attention`.

softmax(query · keyᵀ / √d + mask) · value writes queries × keys numbers to memory several times; the operator does not.
It is the same real function, but NaN is treated differently. If an input is NaN, or all scores of a row are masked by
-inf, the program returns NaN and PyTorch's operator may return 0. So this pass runs only if requested by name, and
accepts a mask only if you promise that no row is masked completely: `Sdpa(every_row_sees_something=True)`.

In training, attention with dropout of the probabilities uses the separate operators; evaluation uses the fused one.
"""

from collections.abc import Callable
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.inserted_modules import Attention
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorOperands, attribute_of, one_dtype, tensor_operands
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import new_module

Tensor = torch.Tensor
Scores = Callable[[Tensor, Tensor, int, int, float], Tensor]


def _product(query: Tensor, key: Tensor, first: int, second: int) -> Tensor:
    return torch.matmul(query, torch.transpose(key, first, second))


def _attend(scores: Tensor, value: Tensor, dim: int) -> Tensor:
    return torch.matmul(torch.softmax(scores, dim), value)


def _drop(scores: Tensor, value: Tensor, dim: int, p: float, training: bool) -> Tensor:
    return torch.matmul(F.dropout(torch.softmax(scores, dim), p, training), value)


# q, k, v: query, key and value; i, j: the dimensions of key that are exchanged; d: that of softmax; on: the flag of
# dropout.
_SCORES: tuple[Scores, ...] = (
    lambda q, k, i, j, scale: _product(q, k, i, j) / scale,
    lambda q, k, i, j, scale: _product(q, k, i, j) * scale,
    lambda q, k, i, j, scale: _product(q / scale, k, i, j),
    lambda q, k, i, j, scale: _product(q * scale, k, i, j),
)


def _patterns(scores: Scores) -> tuple[Callable[..., Tensor], ...]:
    """Return attention with these scores, with and without dropout and mask, the largest pattern first."""
    return (
        lambda q, k, v, i, j, d, scale, mask, p, on: _drop(scores(q, k, i, j, scale) + mask, v, d, p, on),
        lambda q, k, v, i, j, d, scale, p, on: _drop(scores(q, k, i, j, scale), v, d, p, on),
        lambda q, k, v, i, j, d, scale, mask: _attend(scores(q, k, i, j, scale) + mask, v, d),
        lambda q, k, v, i, j, d, scale: _attend(scores(q, k, i, j, scale), v, d),
    )


class Sdpa(FusionPass):
    """Fuse separate operators of attention onto PyTorch's operator; runs only if requested by name."""

    name = "sdpa"
    by_default = False
    patterns: ClassVar = tuple(pattern for scores in _SCORES for pattern in _patterns(scores))

    def __init__(self, *, every_row_sees_something: bool = False) -> None:
        """Accept masks too if the caller promises that no row of scores consists only of -inf."""
        super().__init__()
        self._takes_masks = every_row_sees_something

    def guard(self, match: Match) -> Objection | None:
        """Refuse q, k and v of several dtypes or without four dimensions, and an unproven scale, dropout or mask."""
        operands = tensor_operands(match, "q", "k", "v")
        if isinstance(operands, Objection):
            return operands
        if any(len(facts.shape) != 4 or 0 in facts.shape for facts in operands.values()):
            return Objection("shape", "query, key and value must have four dimensions, none of them empty")
        if operands["q"].shape[:2] != operands["k"].shape[:2] or operands["k"].shape[:2] != operands["v"].shape[:2]:
            return Objection("shape", "query, key and value do not have the same batch and heads")
        return _objection_to_literals(match) or self._objection_to_mask(match, operands) or one_dtype(operands)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return a module that uses separate operators in training with dropout, else PyTorch's operator."""
        owner, training = match.anchor.graph.owning_module, match.operands.get("on", False)
        assert owner is not None, "a pass works on the graph of a GraphModule"
        now = attribute_of(match, training) if isinstance(training, ModuleAttribute) else training
        dropout = match.operands.get("p", 0.0) if isinstance(training, ModuleAttribute) else 0.0
        module = Attention(_factor(match), float(dropout)).train(bool(now))  # type: ignore[arg-type]  # the guard has seen a number
        call = new_module(owner, "attention", module)
        names = ("q", "k", "v", "mask")

        def fused(**operands: fx.Proxy) -> object:
            return call(*(operands[name] for name in names if name in operands))

        return fused

    def _objection_to_mask(self, match: Match, operands: TensorOperands) -> Objection | None:
        if "mask" not in match.operands:
            return None
        mask = tensor_operands(match, "mask")
        if isinstance(mask, Objection):
            return mask
        if not self._takes_masks:
            reason = f"{match['mask']} may mask all of a row, which gives NaN now and 0 fused"
            return Objection("mask", f"{reason}; promise that it does not with Sdpa(every_row_sees_something=True)")
        scores = (*operands["q"].shape[:-1], operands["k"].shape[-2])
        if mask["mask"].dtype != operands["q"].dtype or not _broadcasts(mask["mask"].shape, scores):
            reason = f"{match['mask']} is {mask['mask'].dtype} of shape {mask['mask'].shape}"
            return Objection("mask", f"{reason}, and the scores are {operands['q'].dtype} of shape {scores}")
        return None


def _objection_to_literals(match: Match) -> Objection | None:
    scale = match["scale"]
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or scale <= 0:
        return Objection("argument", f"the scores are scaled by {scale!r}; only a positive number can be fused")
    exchanged = {dim % 4 if isinstance(dim, int) else dim for dim in (match["i"], match["j"])}
    if exchanged != {2, 3} or match["d"] not in (-1, 3):
        return Objection("argument", "key is not transposed in its last dimensions, or softmax is not over the last")
    p, training = match.operands.get("p", 0.0), match.operands.get("on", False)
    if not isinstance(p, (int, float)) or not (training is False or isinstance(training, ModuleAttribute) or p == 0):
        return Objection("training", "dropout of the probabilities is switched on for good")
    return None


def _factor(match: Match) -> float:
    """Return what the scores are multiplied by."""
    scale = match["scale"]
    assert isinstance(scale, (int, float)), "the guard has seen a number"
    return 1.0 / scale if any(call.operator.name == "div" for call in match.calls) else float(scale)


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    fits = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, wanted) for size, wanted in fits)
