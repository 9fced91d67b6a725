"""Put one operator in the place of a formula that is written out by hand: GELU, SiLU, softmax, LayerNorm.

`x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))` becomes `F.gelu(x)`, whatever the order and the spelling: a formula is
compared as a polynomial, see `formulas/polynomial.py`. It runs before the fusions, which look for the operators.

The operator is the same real function, and the program is left alone where its numbers are off, or where it overflows
and the operator does not. What an infinite input gives is up to the operator: GELU of infinity is NaN on some CPUs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.calls import Call, read_call
from course_lib.fusion.formulas import ACTIVATIONS, Reading, activations, layer_norm, softmax
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import common_objection
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import TensorOperands, one_dtype, tensor_operands
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection, closeness
from course_lib.fusion.storage import mutating_nodes
from course_lib.fusion.surgery import erase, put_in_place_of

# What looks for a formula around a call of an operator.
RECOGNISERS: Mapping[str, Callable[[Call], Iterator[Reading]]] = {
    **dict.fromkeys(ACTIVATIONS, activations),
    **dict.fromkeys(("sqrt", "rsqrt", "pow", "std"), layer_norm),
    "exp": softmax,
}


class Formulas(GraphPass):
    """The pass `formulas`."""

    name = "formulas"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace each formula by its operator; count them."""
        writers = mutating_nodes(gm.graph)
        replaced, gone = 0, set[fx.Node]()
        rejected: list[Rejected] = []
        for node in list(gm.graph.nodes):
            call = None if node in gone else read_call(node)
            if call is None or call.operator.name not in RECOGNISERS:
                continue
            refusals: list[tuple[Objection, Match]] = []
            for reading in RECOGNISERS[call.operator.name](call):
                match = _match(reading, writers)
                objection = reading.objection or common_objection(match) or _objection_to_autocast(reading.result)
                objection = objection or _objection_to_result(reading, match)
                if objection is None:
                    put_in_place_of(reading.result, reading.replacement, reading.operands)
                    erase(match.nodes)
                    gone |= reading.nodes
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


def _match(reading: Reading, writers: tuple[fx.Node, ...]) -> Match:
    """Return what was read as a match, so that the rules that hold for all fusions can look at it."""
    nodes = [reading.result, *(reading.nodes - {reading.result})]
    calls = tuple(call for node in nodes if (call := read_call(node)) is not None)
    return Match(calls, reading.operands, (), writers)


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


def _objection_to_result(reading: Reading, match: Match) -> Objection | None:
    """Object unless the operator takes these operands, and gives a tensor of the same shape, type and strides."""
    tensors = [name for name, value in reading.operands.items() if isinstance(value, fx.Node)]
    operands = tensor_operands(match, *tensors)
    if not isinstance(operands, TensorOperands):
        return operands
    objection = one_dtype(operands)
    if objection is not None:
        return objection
    now = reading.result.meta.get("val")
    if not isinstance(now, FakeTensor):
        return Objection("shape unknown", f"the shape of {reading.result} is not known")
    values = {n: v.meta.get("val") if isinstance(v, fx.Node) else v for n, v in reading.operands.items()}
    with now.fake_mode, torch.no_grad():
        then = reading.replacement(**values)
    for what in ("dtype", "shape", "stride"):
        found, wanted = (getattr(value, what) for value in (then, now))
        found, wanted = (found(), wanted()) if what == "stride" else (found, wanted)
        if found != wanted:
            reason = f"{reading.result} has {what} {wanted}, and the operator gives {found}"
            return Objection("dtype" if what == "dtype" else "shape", reason)
    return None
