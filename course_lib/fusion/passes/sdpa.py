"""On request: fuse the separate operators of attention onto `torch.nn.functional.scaled_dot_product_attention`.

softmax(query · keyᵀ / √d + mask) · value writes queries × keys numbers to memory several times; the operator does not.
It is the same real function, but NaN is treated differently. If an input is NaN, or all scores of a row are masked by
-inf, the program returns NaN and PyTorch's operator may return 0. So this pass runs only if requested by name, and
accepts a mask only if you promise that no row is masked completely: `Sdpa(every_row_sees_something=True)`.

It reads matrix products, `bmm` and `einsum`, three or four dimensions, any scale that is a number while the shapes stay
the same (`math.sqrt(q.size(-1))`), and masks that are added or that fill scores (`masked_fill`, `where`).

In training, attention with dropout of the probabilities uses the separate operators; evaluation uses the fused one.
"""

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import ModuleAttribute
from course_lib.fusion.expressions.attention import Attention
from course_lib.fusion.expressions.attention_layout import Layout, layout_of
from course_lib.fusion.fusion_pass import FusionPass
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import (
    SYMBOLIC,
    TensorFacts,
    attribute_of,
    constant_number,
    number_of,
    one_dtype,
    tensor_operands,
)
from course_lib.fusion.rules import Objection
from course_lib.fusion.surgery import new_module

Tensor = torch.Tensor
Product = Callable[[Tensor, Tensor, int, int, str], Tensor]
MOST_FILL = -1e4  # the exponential of a score so far below the others is 0 in every dtype

# How scores are computed from query and key, and the result from probabilities and value. i, j: the dimensions of key
# that are exchanged; e: the equation of einsum.
_PRODUCTS: tuple[tuple[Product, Callable[[Tensor, Tensor, str], Tensor]], ...] = (
    (lambda q, k, i, j, e: torch.matmul(q, torch.transpose(k, i, j)), lambda p, v, e: torch.matmul(p, v)),
    (lambda q, k, i, j, e: torch.bmm(q, torch.transpose(k, i, j)), lambda p, v, e: torch.bmm(p, v)),
    (lambda q, k, i, j, e: torch.einsum(e, q, k), lambda p, v, e: torch.einsum(e, p, v)),
)
_SCALES: tuple[Callable[[Callable[..., Tensor], Tensor, Tensor, float], Tensor], ...] = (
    lambda product, q, k, scale: product(q, k) / scale,
    lambda product, q, k, scale: product(q, k) * scale,
    lambda product, q, k, scale: product(q / scale, k),
    lambda product, q, k, scale: product(q * scale, k),
    lambda product, q, k, scale: product(q, k),  # the last, because it matches what is scaled before, too
)
_MASKS: tuple[Callable[[Tensor, Tensor, float], Tensor], ...] = (
    lambda scores, mask, fill: scores + mask,
    lambda scores, mask, fill: torch.masked_fill(scores, mask, fill),
    lambda scores, mask, fill: torch.where(mask, fill, scores),
    lambda scores, mask, fill: torch.where(mask, scores, fill),
    lambda scores, mask, fill: scores,
)
_DROPS: tuple[Callable[[Tensor, float, bool], Tensor], ...] = (
    lambda probabilities, p, on: F.dropout(probabilities, p, on),
    lambda probabilities, p, on: probabilities,
)


def _patterns() -> tuple[Callable[..., Tensor], ...]:
    """Return attention in every combination, with dropout and mask first; a pattern binds only what it uses."""
    return tuple(_pattern(*choice) for choice in itertools.product(_PRODUCTS, _SCALES, _DROPS, _MASKS))


def _pattern(
    products: tuple[Product, Callable[[Tensor, Tensor, str], Tensor]],
    scaled: Callable[..., Tensor],
    dropped: Callable[..., Tensor],
    masked: Callable[..., Tensor],
) -> Callable[..., Tensor]:
    product, weigh = products

    # q, k, v: query, key and value; d: the dimension of softmax; p, on: rate and flag of dropout.
    def attention(
        q: Tensor, k: Tensor, v: Tensor, i: int, j: int, first: str, second: str, d: int, scale: float, mask: Tensor,
        fill: float, p: float, on: bool,
    ) -> Tensor:  # fmt: skip
        scores = masked(scaled(lambda query, key: product(query, key, i, j, first), q, k, scale), mask, fill)
        return weigh(dropped(torch.softmax(scores, d), p, on), v, second)

    return attention


class Sdpa(FusionPass):
    """Fuse separate operators of attention onto PyTorch's operator; runs only if requested by name."""

    name = "sdpa"
    by_default = False
    patterns: ClassVar = _patterns()

    def __init__(self, *, every_row_sees_something: bool = False) -> None:
        """Accept masks too if the caller promises that they leave a score in every row.

        That score is not -inf, and if the mask fills in a finite number such as -1e9, it is far above that number.
        """
        super().__init__()
        self._takes_masks = every_row_sees_something

    def guard(self, match: Match) -> Objection | None:
        """Refuse other shapes, types and layouts than the operator takes, and an unproven scale, dropout or mask."""
        operands = tensor_operands(match, "q", "k", "v")
        if isinstance(operands, Objection):
            return operands
        layout = layout_of(match, len(operands["q"].shape))
        if layout is None:
            return Objection("argument", "key is not transposed in its last dimensions, or einsum computes another sum")
        shapes = (
            {name: layout.shape(name, facts.shape) for name, facts in operands.items()}
            if len({len(facts.shape) for facts in operands.values()}) == 1
            else {}
        )
        objection = _objection_to_shapes(shapes) or _objection_to_literals(match, len(operands["q"].shape))
        objection = objection or one_dtype(operands) or self._objection_to_mask(match, shapes, operands["q"].dtype)
        return objection or _objection_to_result(match, layout)

    def replacement(self, match: Match) -> Callable[..., object]:
        """Return a module that uses separate operators in training with dropout, else PyTorch's operator."""
        owner = match.anchor.graph.owning_module
        assert owner is not None, "a pass works on the graph of a GraphModule"
        first = match.operands["q"]
        assert isinstance(first, (fx.Node, ModuleAttribute)), "the guard has seen a tensor"
        facts = tensor_operands(match, "q")
        assert not isinstance(facts, Objection), "the guard has seen the shapes"
        layout = layout_of(match, len(facts["q"].shape))
        assert layout is not None, "the guard has seen the layout"
        call = new_module(owner, "attention", _module(match))
        return lambda **operands: _arranged(call, layout, operands)

    def _objection_to_mask(
        self, match: Match, shapes: dict[str, tuple[int, ...]], dtype: torch.dtype
    ) -> Objection | None:
        if "mask" not in match.operands:
            return None
        mask = tensor_operands(match, "mask")
        if isinstance(mask, Objection):
            return mask
        if not self._takes_masks:
            reason = f"{match['mask']} may mask all of a row, which gives NaN now and 0 fused"
            return Objection("mask promise", f"{reason}; promise that it does not")
        wanted = torch.bool if "fill" in match.operands else dtype
        return _objection_to_kind_of_mask(match, mask["mask"], wanted, (*shapes["q"][:-1], shapes["k"][-2]))


def _objection_to_shapes(shapes: dict[str, tuple[int, ...]]) -> Objection | None:
    if not shapes or any(len(shape) not in (3, 4) or 0 in shape for shape in shapes.values()):
        return Objection("shape", "query, key and value must have three or four dimensions each, none of them empty")
    if len({shape[:-2] for shape in shapes.values()}) > 1:
        return Objection("shape", "query, key and value do not have the same batch and heads")
    if shapes["q"][-1] != shapes["k"][-1] or shapes["k"][-2] != shapes["v"][-2]:
        return Objection("shape", "query, key and value do not have fitting rows and columns")
    return None


def _objection_to_literals(match: Match, rank: int) -> Objection | None:
    scale = number_of(match.operands.get("scale", 1.0))
    if scale is None or scale <= 0:
        return _objection_to_scale(match["scale"], scale)
    if match["d"] not in (-1, rank - 1):
        return Objection("argument", "softmax is not over the last dimension")
    p, training = match.operands.get("p", 0.0), match.operands.get("on", False)
    if not isinstance(p, (int, float)) or not (training is False or isinstance(training, ModuleAttribute) or p == 0):
        return Objection("training", "dropout of the probabilities is switched on for good")
    return None


def _objection_to_scale(given: object, scale: float | None) -> Objection:
    """Say what is known of a scale, and how to write it so that it can be fused."""
    if scale is not None:
        return Objection("scale", f"the scores are scaled by {scale:g}, and PyTorch's operator takes positive numbers")
    if isinstance(given, fx.Node) and SYMBOLIC in given.meta:
        return Objection("scale", f"the scores are scaled by {given}, another number for each size")
    known = given.meta.get("val") if isinstance(given, fx.Node) else None
    if isinstance(known, Tensor):
        reason = f"the scores are scaled by {given}, a tensor that the program computes"
        return Objection("scale", f"{reason}; PyTorch's operator takes one number for all scores")
    return Objection("scale", f"the scores are scaled by {given!r}, which is no finite number")


def _objection_to_kind_of_mask(
    match: Match, mask: TensorFacts, wanted: torch.dtype, scores: tuple[int, ...]
) -> Objection | None:
    if mask.dtype != wanted or not _broadcasts(mask.shape, scores):
        reason = f"{match['mask']} is {mask.dtype} of shape {mask.shape}"
        return Objection("mask", f"{reason}, and this place takes {wanted} and scores of shape {scores}")
    fill = _fill(match)
    if fill is not None and not fill <= MOST_FILL:
        reason = f"masked scores become {match['fill']!r}, which may not be far below the others"
        return Objection("fill", reason)
    return None


def _fill(match: Match) -> float | None:
    """Return the number that masked scores become, NaN if it is not known, or None if the mask is added."""
    if "fill" not in match.operands:
        return None
    known = constant_number(match["fill"])
    return math.nan if known is None else known


def _objection_to_result(match: Match, layout: Layout) -> Objection | None:
    """Refuse a result that would have another shape, type or strides, found on fake tensors."""
    now = match.anchor.meta.get("val")
    if not isinstance(now, FakeTensor):
        return Objection("shape unknown", f"the shape of {match.anchor} is not known")
    values = {}
    for name in ("q", "k", "v", "mask"):
        operand = match.operands.get(name)
        if isinstance(operand, fx.Node):
            values[name] = operand.meta["val"]
        elif isinstance(operand, ModuleAttribute):
            values[name] = attribute_of(match, operand)
    module = _module(match).eval()
    with now.fake_mode, torch.no_grad():
        then = _arranged(module, layout, values)
    if (then.shape, then.stride(), then.dtype) == (now.shape, now.stride(), now.dtype):
        return None
    reason = f"{match.anchor} has the strides {now.stride()}, and the fused operator gives {then.stride()}"
    return Objection("strides", reason)


def _arranged(call: Callable[..., Any], layout: Layout, operands: Mapping[str, Any]) -> Any:
    """Call attention on permuted tensors, and permute its result."""
    mask = [operands["mask"]] if "mask" in operands else []
    return _permuted(call(*(_permuted(operands[name], order) for name, order in layout.inputs.items()), *mask),
                     layout.result)  # fmt: skip


def _permuted(tensor: Any, order: tuple[int, ...]) -> Any:
    return tensor if order == tuple(range(len(order))) else tensor.permute(order)


def _module(match: Match) -> Attention:
    training = match.operands.get("on", False)
    now = attribute_of(match, training) if isinstance(training, ModuleAttribute) else training
    dropout = match.operands.get("p", 0.0) if isinstance(training, ModuleAttribute) else 0.0
    wheres = [call for call in match.calls if call.operator.name == "where"]
    keeps = any(call["other"] is match.operands.get("fill") for call in wheres)
    module = Attention(_factor(match), float(dropout), _fill(match), keeps)  # type: ignore[arg-type]  # a number
    return module.train(bool(now))


def _factor(match: Match) -> float:
    """Return what the scores are multiplied by."""
    scale = number_of(match.operands.get("scale", 1.0))
    assert scale is not None, "the guard has seen a number"
    return 1.0 / scale if any(call.operator.name == "div" for call in match.calls) else scale


def _broadcasts(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    fits = zip(reversed(shape), reversed(to), strict=False)
    return len(shape) <= len(to) and all(size in (1, wanted) for size, wanted in fits)
