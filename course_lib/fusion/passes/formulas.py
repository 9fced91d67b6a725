"""Put one operator in the place of a formula that is written out by hand: GELU, SiLU, softmax, LayerNorm.

`x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))` becomes `F.gelu(x)`, whatever the order and the spelling: a pattern is
compared as a polynomial, see `algebra/polynomial.py`. This pass runs before the fusions, which look for the operators.

The operator is the same real function, and the program is left alone where its numbers are off, or where it overflows
and the operator does not. What an infinite input gives is up to the operator: GELU of infinity is NaN on some CPUs.
"""

import functools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.algebra import FormulaPattern
from course_lib.fusion.algebra.atoms import atoms_of
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import common_objection
from course_lib.fusion.matching import Match
from course_lib.fusion.mutation import mutating_nodes
from course_lib.fusion.operand_facts import TensorOperands, one_dtype, tensor_operands
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rewriting import erase, put_in_place_of
from course_lib.fusion.rules import Objection, closeness
from course_lib.fusion.values import tensor_facts

Tensor = torch.Tensor
Dims = tuple[int, ...]
Replacement = Callable[..., Tensor]
_SLOPE = math.sqrt(2 / math.pi)


def _gelu(x: Tensor) -> Tensor:
    return x * 0.5 * (1 + torch.erf(x * math.sqrt(0.5)))


def _gelu_by_distribution(x: Tensor) -> Tensor:
    return x * torch.special.ndtr(x)


def _gelu_tanh(x: Tensor) -> Tensor:  # Hendrycks and Gimpel, arXiv:1606.08415
    return x * 0.5 * (1 + torch.tanh(_SLOPE * (x + 0.044715 * x**3)))


def _silu(x: Tensor) -> Tensor:
    return x * torch.sigmoid(x)


def _exponentials(x: Tensor, dims: Dims) -> Tensor:
    """Write softmax without the maximum: the same real function, but exp overflows from 89 on (at fp32)."""
    e = torch.exp(x)
    return e / torch.sum(e, dims, keepdim=True)


def _softmax(x: Tensor, dims: Dims) -> Tensor:
    return _exponentials(x - torch.amax(x, dims, keepdim=True), dims)


def _centred(x: Tensor, dims: Dims) -> Tensor:
    return x - torch.mean(x, dims, keepdim=True)


# The mean of the squares less the square of the mean is no pattern: it cancels out where the mean is large.
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


def _any(match: Match) -> Objection | None:
    return None


def _object_to_float16(match: Match) -> Objection | None:
    """Object to powers of float16 values: they overflow from 256 on, where the operator, in float32, does not."""
    facts = tensor_facts(match.node("x"))
    if facts is None or facts.dtype != torch.float16:
        return None
    return Objection("dtype", f"powers of {match['x']}, which is float16, may overflow where the operator does not")


def _object_to_overflow(match: Match) -> Objection:
    exponential = next(call.node for call in match.calls if call.operator.name == "exp")
    reason = f"{exponential} overflows where softmax would not: the maximum over {_dims(match)} stays in it"
    return Objection("overflow", reason)


def _object_to_dimensions(match: Match) -> Objection | None:
    """Object to a softmax over several dimensions at once."""
    if len(_dims(match)) == 1:
        return None
    return Objection("shape", f"{match.anchor} sums over the dimensions {_dims(match)}, and softmax over one")


def _object_to_normalisation(match: Match) -> Objection | None:
    """Object unless the variance and the dimensions are those of LayerNorm, and float16 has no powers to take."""
    return _object_to_variance(match) or _object_to_shapes(match) or _object_to_float16(match)


def _object_to_variance(match: Match) -> Objection | None:
    """Object to a variance that is not the biased one, and to eps outside the root."""
    correction, added = match.operands.get("correction", 0.0), match.operands.get("added", 0.0)
    if correction != 0:
        root = next(call.node for call in match.calls if call.operator.name in ("sqrt", "rsqrt", "pow", "std"))
        reason = f"{root} is made of a variance with correction {correction:g}, and that of LayerNorm has none"
        return Objection("variance", reason)
    if added == 0:
        return None
    reason = f"{match.anchor} adds {added:g} to the standard deviation, where LayerNorm adds eps to the variance"
    return Objection("variance", reason)


def _object_to_shapes(match: Match) -> Objection | None:
    shapes = {
        n: facts.shape
        for n, v in match.operands.items()
        if (facts := tensor_facts(v) if isinstance(v, fx.Node) else None) is not None
    }
    rank, normalized = len(shapes["x"]), _normalized_shape(match)
    if _dims(match) != tuple(range(rank - len(normalized), rank)):
        reason = f"{match['x']} of shape {shapes['x']} is normalised over the dimensions {_dims(match)}"
        return Objection("shape", f"{reason}, and LayerNorm takes the last ones")
    for name in ("weight", "bias"):
        if name in match.operands and shapes.get(name) != normalized:
            reason = f"{match[name]} has shape {shapes.get(name)}, and LayerNorm takes a {name} of {normalized}"
            return Objection("shape", reason)
    return None


def _to_softmax(match: Match) -> Replacement:
    facts, (dim, *_) = tensor_facts(match.node("x")), _dims(match)
    from_last = dim - len(facts.shape) if facts is not None else dim  # -1 for the last, as people write it
    return lambda x, **_: torch.softmax(x, from_last)


def _to_layer_norm(match: Match) -> Replacement:
    shape, eps = _normalized_shape(match), match.operands.get("eps", 0.0)
    return lambda x, weight=None, bias=None, **_: F.layer_norm(x, shape, weight, bias, eps)


def _dims(match: Match) -> Dims:
    """Return the dimensions that are reduced, counted from the front, in ascending order."""
    dims = match["dims"]
    assert isinstance(dims, tuple), "an atom gives dimensions as a tuple"
    return dims


def _normalized_shape(match: Match) -> tuple[int, ...]:
    facts = tensor_facts(match.node("x"))
    assert facts is not None, "a reduction is read only where the shape is known"
    return tuple(facts.shape[dim] for dim in _dims(match))


@dataclass(frozen=True)
class Formula:
    """What stands for an operator: functions to look for, what else must hold, and what is computed instead."""

    operator: str
    patterns: tuple[Callable[..., Tensor], ...]
    replacement: Callable[[Match], Replacement]
    guard: Callable[[Match], Objection | None] = _any


FORMULAS = (
    Formula("GELU", (_gelu, _gelu_by_distribution), lambda match: lambda x: F.gelu(x)),
    Formula("GELU by tanh", (_gelu_tanh,), lambda match: lambda x: F.gelu(x, approximate="tanh"), _object_to_float16),
    Formula("SiLU", (_silu,), lambda match: lambda x: F.silu(x)),
    Formula("softmax", (_softmax,), _to_softmax, _object_to_dimensions),
    Formula("softmax", (_exponentials,), _to_softmax, _object_to_overflow),
    Formula("LayerNorm", _LAYER_NORMS, _to_layer_norm, _object_to_normalisation),
)


class Formulas(GraphPass):
    """The pass `formulas`."""

    name = "formulas"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace each formula by its operator; count them."""
        writers = mutating_nodes(gm.graph)
        replaced, gone = 0, set[fx.Node]()
        rejected: list[Rejected] = []
        for node in list(gm.graph.nodes):
            refusals: list[tuple[Objection, Match]] = []
            for formula, match in _matches(node, writers) if node not in gone else ():
                objection = _objection(formula, match)
                if objection is None:
                    put_in_place_of(match.anchor, formula.replacement(match), match.operands)
                    erase(match.nodes)
                    gone |= set(match.nodes)
                    replaced += 1
                    break
                refusals.append((objection, match))
            else:
                rejected += self._refusal(refusals)
        return replaced, rejected

    def _refusal(self, refusals: list[tuple[Objection, Match]]) -> list[Rejected]:
        if not refusals:
            return []
        objection, match = max(refusals, key=lambda pair: closeness(pair[0]))
        names = tuple(node.name for node in match.nodes)
        return [refusal(self.name, names, objection, match.anchor)]


@functools.cache
def _patterns() -> tuple[tuple[Formula, FormulaPattern], ...]:
    return tuple((one, FormulaPattern(function, ("eps", "added"))) for one in FORMULAS for function in one.patterns)


def _matches(node: fx.Node, writers: tuple[fx.Node, ...]) -> Iterator[tuple[Formula, Match]]:
    operators = {atom.operator for atom in atoms_of(node)}
    for formula, pattern in _patterns():
        if pattern.operator in operators:
            yield from ((formula, match) for match in pattern.matches(node, writers))


def _objection(formula: Formula, match: Match) -> Objection | None:
    """Return the first reason why a match must be left alone: its numbers, the formula's guard, then the rest."""
    if match.differences:
        differing = " and ".join(f"{one.found} where it has {one.expected}" for one in match.differences)
        return Objection("literal", f"{match.anchor} looks like {formula.operator}, but has {differing}")
    objection = formula.guard(match) or common_objection(match) or _objection_to_autocast(match.anchor)
    return objection or _objection_to_result(formula, match)


def _objection_to_autocast(result: fx.Node) -> Objection | None:
    """Object within autocast, which converts the operands of some operators, and not those of the formula."""
    begins, ends = (
        [node for node in result.graph.find_nodes(op="call_function", target=function) if node < result]
        for function in (torch.amp.autocast_mode._enter_autocast, torch.amp.autocast_mode._exit_autocast)
    )
    open_ones = [node for node in begins if all(node not in end.args for end in ends)]
    if not open_ones:
        return None
    return Objection("regime", f"{open_ones[-1]} begins autocast, which treats the operator in another way")


def _objection_to_result(formula: Formula, match: Match) -> Objection | None:
    """Object unless the operator takes these operands, and gives a tensor of the same shape, type and strides."""
    operands = tensor_operands(match, *(name for name, value in match.operands.items() if isinstance(value, fx.Node)))
    if not isinstance(operands, TensorOperands):
        return operands
    objection = one_dtype(operands)
    if objection is not None:
        return objection
    now = match.anchor.meta.get("val")
    if not isinstance(now, FakeTensor):
        return Objection("shape unknown", f"the shape of {match.anchor} is not known")
    values = {n: v.meta.get("val") if isinstance(v, fx.Node) else v for n, v in match.operands.items()}
    with now.fake_mode, torch.no_grad():
        then = formula.replacement(match)(**values)
    for what in ("dtype", "shape", "stride"):
        found, wanted = (getattr(value, what) for value in (then, now))
        found, wanted = (found(), wanted()) if what == "stride" else (found, wanted)
        if found != wanted:
            reason = f"{match.anchor} has {what} {wanted}, and the operator gives {found}"
            return Objection("dtype" if what == "dtype" else "shape", reason)
    return None
