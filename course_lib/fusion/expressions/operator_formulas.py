"""The formulas of GELU, SiLU, softmax, LayerNorm and RMSNorm: their patterns, and when an operator may replace each.

A pattern is compared as a polynomial, see `polynomial.py`, so that order and spelling do not matter.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.fusion.calls import Call
from course_lib.fusion.expressions.casts import CAST
from course_lib.fusion.expressions.formula_pattern import FormulaPattern
from course_lib.fusion.expressions.polynomial import atoms_of
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorFacts, tensor_facts
from course_lib.fusion.operators import operators
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import Writers

Tensor = torch.Tensor
Dims = tuple[int, ...]
Replacement = Callable[..., Tensor]
_SLOPE = math.sqrt(2 / math.pi)
_ROOTS = ("sqrt", "rsqrt", "pow", "std")
_OF_POWERS = (*_ROOTS, "tanh")


def _exponentials(x: Tensor, dims: Dims) -> Tensor:
    """Compute softmax without subtracting the maximum: the same real function, but exp overflows from 89 (at fp32)."""
    e = torch.exp(x)
    return e / torch.sum(e, dims, keepdim=True)


def _softmax(x: Tensor, dims: Dims) -> Tensor:
    return _exponentials(x - torch.amax(x, dims, keepdim=True), dims)


def _centred(x: Tensor, dims: Dims) -> Tensor:
    return x - torch.mean(x, dims, keepdim=True)


# The mean of squares minus the square of the mean is not a pattern: it loses precision if the mean is large.
def _by_squares(x: Tensor, dims: Dims, eps: float) -> Tensor:
    variance = torch.mean(_centred(x, dims) ** 2, dims, keepdim=True)
    return _centred(x, dims) / torch.sqrt(variance + eps)


def _by_variance(x: Tensor, dims: Dims, correction: float, eps: float) -> Tensor:
    return _centred(x, dims) / torch.sqrt(torch.var(x, dims, correction=correction, keepdim=True) + eps)


def _by_deviation(x: Tensor, dims: Dims, correction: float, added: float) -> Tensor:
    return _centred(x, dims) / (torch.std(x, dims, correction=correction, keepdim=True) + added)


# `eps` stands under the root and `added` outside; `correction` is that of the variance.
# fmt: off
_LAYER_NORMS: tuple[Callable[..., Tensor], ...] = (
    lambda x, weight, bias, dims, eps: _by_squares(x, dims, eps) * weight + bias,
    lambda x, weight, dims, eps: _by_squares(x, dims, eps) * weight,
    lambda x, bias, dims, eps: _by_squares(x, dims, eps) + bias,
    _by_squares,
    lambda x, weight, bias, dims, correction, eps: _by_variance(x, dims, correction, eps) * weight + bias,
    lambda x, weight, dims, correction, eps: _by_variance(x, dims, correction, eps) * weight,
    lambda x, bias, dims, correction, eps: _by_variance(x, dims, correction, eps) + bias,
    _by_variance,
    lambda x, weight, bias, dims, correction, added: _by_deviation(x, dims, correction, added) * weight + bias,
    lambda x, weight, dims, correction, added: _by_deviation(x, dims, correction, added) * weight,
    lambda x, bias, dims, correction, added: _by_deviation(x, dims, correction, added) + bias,
    _by_deviation,
)
# fmt: on


def _root_mean_square(x: Tensor, dims: Dims, eps: float) -> Tensor:
    return x / torch.sqrt(torch.mean(x**2, dims, keepdim=True) + eps)


def _float16_objection(match: Match) -> Objection | None:
    """Object to powers of float16 values: they overflow from 256, but the operator, which uses float32, does not."""
    inside = {call.node: call for call in match.calls}
    reached = [call.node for call in match.calls if call.operator.name in _OF_POWERS]
    for node in reached:  # grows while it is read
        reached += [one for one in node.all_input_nodes if one in inside and one not in reached]
    powers = [tensor_facts(node) for node in reached if inside[node].operator is not CAST]
    if all(facts is None or facts.dtype != torch.float16 for facts in powers):
        return None
    return Objection("dtype", f"powers of {match['x']}, which is float16, may overflow where the operator does not")


def _softmax_objection(match: Match) -> Objection | None:
    """Object to a softmax over several dimensions at once, and to one without the maximum."""
    dims = _dims(match)
    if len(dims) != 1:
        return Objection("shape", f"{match.anchor} divides by a sum over {dims}, and softmax takes one dimension")
    if any(call.operator.name in ("amax", "max") for call in match.calls):
        return None
    exponential = next(call.node for call in match.calls if call.operator.name == "exp")
    reason = f"{exponential} overflows where softmax would not: the maximum over {dims} stays in it"
    return Objection("overflow", reason)


def _layer_norm_objection(match: Match) -> Objection | None:
    """Object unless variance, eps, dimensions and affine are those of LayerNorm, and no float16 is squared."""
    return _variance_objection(match) or _objection_to_dimensions(match, "LayerNorm") or _float16_objection(match)


def _rms_norm_objection(match: Match) -> Objection | None:
    """Object unless eps, dimensions and weight are those of RMSNorm, and no float16 is squared."""
    eps = _number(match, "eps")
    if eps < 0:
        return Objection("variance", f"{match.anchor} is made of a mean of squares less {-eps:g}, where eps is added")
    return _objection_to_dimensions(match, "RMSNorm") or _float16_objection(match)


def _objection_to_dimensions(match: Match, operator: str) -> Objection | None:
    """Object to other dimensions than the last ones, and to a weight or bias of another shape than theirs."""
    shape, dims, normalized = _facts(match, "x").shape, _dims(match), _normalized_shape(match)
    if dims != tuple(range(len(shape) - len(dims), len(shape))):
        reason = f"{match['x']} of shape {shape} is normalised over the dimensions {dims}"
        return Objection("shape", f"{reason}, and {operator} takes the last ones")
    for name in ("weight", "bias"):
        facts = tensor_facts(match.node(name)) if name in match.operands else None
        if name in match.operands and (facts is None or facts.shape != normalized):
            shown = None if facts is None else facts.shape
            return Objection("shape", f"{match[name]} has shape {shown}, and {operator} takes a {name} of {normalized}")
    return None


def _variance_objection(match: Match) -> Objection | None:
    """Object to a variance other than the biased one, and to an eps that is not added under the root."""
    correction, added, eps = (_number(match, name) for name in ("correction", "added", "eps"))
    if correction == added == 0 <= eps:
        return None
    root = next(call.node for call in match.calls if call.operator.name in _ROOTS)
    if correction != 0:
        reason = f"{root} is made of a variance with correction {correction:g}, and that of LayerNorm has none"
    elif added != 0:
        reason = f"{match.anchor} adds {added:g} to the standard deviation, where LayerNorm adds eps to the variance"
    else:
        reason = f"{root} is made of a variance less {-eps:g}, where LayerNorm adds eps"
    return Objection("variance", reason)


def _to_softmax(match: Match) -> Replacement:
    dim = _dims(match)[0] - len(_facts(match, "x").shape)  # -1 for the last, as people write it
    return lambda x, **_: torch.softmax(x, dim)


def _to_layer_norm(match: Match) -> Replacement:
    shape, eps = _normalized_shape(match), _number(match, "eps")
    return lambda x, weight=None, bias=None, **_: F.layer_norm(x, shape, weight, bias, eps)


def _to_rms_norm(match: Match) -> Replacement:
    shape, eps = _normalized_shape(match), _number(match, "eps")
    return lambda x, weight=None, **_: F.rms_norm(x, shape, weight, eps)


def _facts(match: Match, name: str) -> TensorFacts:
    facts = tensor_facts(match.node(name))
    assert facts is not None, "a reduction is read only where the shape is known"
    return facts


def _number(match: Match, name: str) -> float:
    number = match.operands.get(name, 0.0)
    assert isinstance(number, float), "a pattern's number is a float"
    return number


def _dims(match: Match) -> Dims:
    """Return the dimensions that are reduced, counted from the front, in ascending order."""
    dims = match["dims"]
    assert isinstance(dims, tuple), "an atom gives dimensions as a tuple"
    return dims


def _normalized_shape(match: Match) -> tuple[int, ...]:
    return tuple(_facts(match, "x").shape[dim] for dim in _dims(match))


@dataclass(frozen=True)
class Formula:
    """The formulas of one operator: the patterns, the replacement, and the guard."""

    operator: str
    patterns: tuple[Callable[..., Tensor], ...]
    replacement: Callable[[Match], Replacement]
    guard: Callable[[Match], Objection | None] = lambda match: None


FORMULAS = (
    Formula(
        "GELU",
        (lambda x: x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5))), lambda x: x * torch.special.ndtr(x)),
        lambda match: lambda x: F.gelu(x),
    ),
    Formula(
        "GELU by tanh",  # Hendrycks and Gimpel, arXiv:1606.08415
        (lambda x: x * 0.5 * (1 + torch.tanh(_SLOPE * (x + 0.044715 * x**3))),),
        lambda match: lambda x: F.gelu(x, approximate="tanh"),
        _float16_objection,
    ),
    Formula("SiLU", (lambda x: x * torch.sigmoid(x),), lambda match: lambda x: F.silu(x)),
    Formula("softmax", (_softmax, _exponentials), _to_softmax, _softmax_objection),
    Formula("LayerNorm", _LAYER_NORMS, _to_layer_norm, _layer_norm_objection),
    Formula(  # after LayerNorm, which is that of a centred value
        "RMSNorm",
        (lambda x, weight, dims, eps: _root_mean_square(x, dims, eps) * weight, _root_mean_square),
        _to_rms_norm,
        _rms_norm_objection,
    ),
)


# The formulas that can be told without shapes, each with its operator and the operator's other arguments.
_OF_ONE_OPERAND: dict[str, tuple[str, dict[str, object]]] = {
    "GELU": ("gelu", {"approximate": "none"}),
    "GELU by tanh": ("gelu", {"approximate": "tanh"}),
    "SiLU": ("silu", {"inplace": False}),
}


def calls_written_out(node: fx.Node, writers: Writers) -> Iterator[tuple[Call, Match]]:
    """Yield each activation whose formula ends with `node` and arithmetic after it: as a call, and its operators."""
    for formula, match in formula_matches(node, writers):
        has_casts = any(call.operator is CAST for call in match.calls)  # of any type, where types are not known
        if formula.operator in _OF_ONE_OPERAND and not match.differences and not has_casts:
            name, literals = _OF_ONE_OPERAND[formula.operator]
            yield Call(match.anchor, operators()[name], {"input": match["x"], **literals}), match


@functools.cache
def _patterns() -> tuple[tuple[Formula, FormulaPattern], ...]:
    return tuple((one, FormulaPattern(function, ("eps", "added"))) for one in FORMULAS for function in one.patterns)


def formula_matches(node: fx.Node, writers: Writers) -> Iterator[tuple[Formula, Match]]:
    """Yield each formula that ends with `node`, with the operators that it consists of."""
    operators = {atom.operator for atom in atoms_of(node)}
    for formula, pattern in _patterns():
        if pattern.operator in operators:
            yield from ((formula, match) for match in pattern.matches(node, writers))
