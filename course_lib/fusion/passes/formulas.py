"""Replace a formula that is written out by hand by one operator: GELU, SiLU, softmax, LayerNorm, RMSNorm.

`x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))` becomes `F.gelu(x)`, whatever the order and the spelling: see
`expressions/operator_formulas.py`. This pass runs before the fusions, which look for the operators.

Casts of a 16-bit value to float32 and back may stand in a formula, because the operator makes them too. RMSNorm on a
CPU is as many launches as its formula, and one on a GPU.

The operator is the same real function. The program is not changed if its literals are inexact, or if it overflows and
the operator does not. At the ends of range, the operator determines the result: on some CPUs, GELU of infinity and
LayerNorm of numbers above 1e19 are NaN.
"""

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor

from course_lib.fusion.expressions.casts import CAST
from course_lib.fusion.expressions.operator_formulas import Formula, formula_matches
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import common_objection
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import one_dtype, tensor_facts, tensor_operands
from course_lib.fusion.result import Rejected, closest_refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import mutating_nodes
from course_lib.fusion.surgery import erase, put_in_place_of


class Formulas(GraphPass):
    """Replace formulas by operators of PyTorch."""

    name = "formulas"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace each formula by its operator; count them."""
        writers = mutating_nodes(gm.graph)
        replaced, gone = 0, set[fx.Node]()
        rejected: list[Rejected] = []
        for node in list(gm.graph.nodes):
            refusals: list[tuple[Objection, Match]] = []
            for formula, match in formula_matches(node, writers) if node not in gone else ():
                objection = _objection(formula, match)
                if objection is None:
                    put_in_place_of(match.anchor, formula.replacement(match), match.operands)
                    erase(match.nodes)
                    gone |= set(match.nodes)
                    replaced += 1
                    break
                refusals.append((objection, match))
            else:
                rejected += closest_refusal(self.name, refusals)
        return replaced, rejected


def _objection(formula: Formula, match: Match) -> Objection | None:
    """Return the first objection to a match: from its numbers, the formula's guard, and then the other rules."""
    if match.differences:
        differing = " and ".join(f"{one.found} where it has {one.expected}" for one in match.differences)
        return Objection("literal", f"{match.anchor} looks like {formula.operator}, but has {differing}")
    objection = formula.guard(match) or _objection_to_casts(match) or common_objection(match)
    return objection or _objection_to_autocast(match.anchor) or _objection_to_result(formula, match)


def _objection_to_casts(match: Match) -> Objection | None:
    """Object to casts that the operator does not make: it computes 16-bit types in float32, others in their own."""
    facts = tensor_facts(match.node("x"))
    casts = [
        call.node for call in match.calls if call.operator is CAST and isinstance(call.node.meta["val"], torch.Tensor)
    ]
    if not casts or facts is None:
        return None
    allowed = {facts.dtype} | ({torch.float32} if facts.dtype in (torch.float16, torch.bfloat16) else set())
    other = next((node for node in casts if node.meta["val"].dtype not in allowed), None)
    if other is None:
        return None
    reason = f"{other} computes in {other.meta['val'].dtype}, and the operator takes {match['x']} in {facts.dtype}"
    return Objection("dtype", reason)


def _objection_to_autocast(result: fx.Node) -> Objection | None:
    """Object within autocast, which converts the operands of the operator but not those of the formula."""
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
    if isinstance(operands, Objection):
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
    for what, found, wanted in (
        ("dtype", then.dtype, now.dtype),
        ("shape", then.shape, now.shape),
        ("stride", then.stride(), now.stride()),
    ):
        if found != wanted:
            reason = f"{match.anchor} has {what} {wanted}, and the operator gives {found}"
            return Objection("dtype" if what == "dtype" else "shape", reason)
    return None
