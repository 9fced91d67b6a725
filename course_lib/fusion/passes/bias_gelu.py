"""Fuse `gelu(x + bias)` onto the operator `course_lib::bias_gelu`.

A pass has three parts, and they stand below in this order: it *recognises* the pattern in the many ways people
spell it; it *guards*, which means that it proves for each match that the fused operator gives the same result in
all circumstances, and says why where it cannot; and it *rewrites* a copy of the graph.
"""

import copy
import operator
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import fx, nn

import course_lib.kernels  # noqa: F401  # registers the operator that we fuse onto
from course_lib.errors import FusionError
from course_lib.fusion.mutation import mutates, mutations_of
from course_lib.fusion.result import FusionResult, Rejected
from course_lib.fusion.values import TensorFacts, tensor_facts
from course_lib.graph.hooks import has_hooks


def fuse_bias_gelu(gm: fx.GraphModule) -> FusionResult:
    """Return a copy of `gm` in which each `gelu(x + bias)` that may be fused is one call of `bias_gelu`.

    Shapes decide which operand is the bias, so run `course_lib.graph.propagate_shapes` first. The copy shares
    parameters and modules with `gm`, which is left as it was. Raises `FusionError` if `gm` is no graph module.
    """
    if not isinstance(gm, fx.GraphModule):
        raise FusionError(
            f"fuse_bias_gelu got a {type(gm).__name__}; it expects a torch.fx.GraphModule, see capture()."
        )
    fused = fx.GraphModule(gm, copy.deepcopy(gm.graph), class_name=type(gm).__name__)
    rejected: list[Rejected] = []
    num_matches = 0
    for match in _matches(fused):  # one by one, because a rewrite may replace an operand of a later match
        operands = _guard(match, fused)
        if isinstance(operands, Rejected):
            rejected.append(operands)
        else:
            _rewrite(match, operands)
            num_matches += 1
    if num_matches:
        fused.delete_all_unused_submodules()
        fused.graph.lint()
        fused.recompile()
    return FusionResult(fused, num_matches, tuple(rejected))


@dataclass(frozen=True)
class _Match:
    """A GELU whose input is a sum, with all that was written in the two calls."""

    addition: fx.Node
    gelu: fx.Node
    left: object
    right: object
    alpha: object
    approximate: object


def _matches(gm: fx.GraphModule) -> Iterator[_Match]:
    for node in gm.graph.nodes:
        if not _is_gelu(node, gm):
            continue
        addition = _argument(node, 0, "input")
        if isinstance(addition, fx.Node) and _is_addition(addition):
            yield _Match(
                addition=addition,
                gelu=node,
                left=_argument(addition, 0, "input"),
                right=_argument(addition, 1, "other"),
                alpha=addition.kwargs.get("alpha", 1),
                approximate=_approximate(node, gm),
            )


def _is_gelu(node: fx.Node, gm: fx.GraphModule) -> bool:
    if node.op == "call_module":
        return isinstance(gm.get_submodule(str(node.target)), nn.GELU)
    return node.op == "call_function" and node.target is F.gelu


def _is_addition(node: fx.Node) -> bool:
    if node.op == "call_method":
        return node.target in ("add", "add_")
    return node.op == "call_function" and node.target in (operator.add, operator.iadd, torch.add)


def _argument(node: fx.Node, position: int, name: str) -> object:
    """Return an argument whether it was given by position or by name."""
    return node.args[position] if position < len(node.args) else node.kwargs.get(name)


def _approximate(node: fx.Node, gm: fx.GraphModule) -> object:
    if node.op == "call_module":
        return gm.get_submodule(str(node.target)).approximate
    return node.kwargs.get("approximate", "none")


@dataclass(frozen=True)
class _Operands:
    x: fx.Node
    bias: fx.Node
    approximate: str


@dataclass(frozen=True)
class _Objection:
    rule: str
    reason: str


def _guard(match: _Match, gm: fx.GraphModule) -> _Operands | Rejected:
    """Return the operands of the fused call, or the first reason why there must be none."""
    operands = (
        _objection_to_addition(match) or _objection_to_gelu(match, gm) or _objection_to_users(match) or _operands(match)
    )
    if isinstance(operands, _Operands):
        operands = _objection_to_order(match, operands) or operands
    if isinstance(operands, _Objection):
        return Rejected((match.addition.name, match.gelu.name), operands.rule, operands.reason)
    return operands


def _objection_to_addition(match: _Match) -> _Objection | None:
    """Object to a call that does more than add two tensors."""
    addition = match.addition
    if mutates(addition):
        return _Objection("in place", f"{addition} writes its sum into a tensor that others may read")
    if type(match.alpha) not in (int, float) or match.alpha != 1:
        return _Objection(
            "alpha", f"{addition} multiplies its second operand by {match.alpha!r}; only alpha=1 can be fused"
        )
    if not isinstance(match.left, fx.Node) or not isinstance(match.right, fx.Node):
        return _Objection("bias shape", f"{addition} adds a number, and the fused operator takes a tensor as its bias")
    return None


def _objection_to_gelu(match: _Match, gm: fx.GraphModule) -> _Objection | None:
    """Object to a module that does more than GELU, and to a formula that is not known yet."""
    if match.gelu.op == "call_module":
        module = gm.get_submodule(str(match.gelu.target))
        if type(module) is not nn.GELU:
            return _Objection(
                "subclass", f"{match.gelu.target} is a subclass of GELU, which may compute something else"
            )
        if has_hooks(module):
            return _Objection("hooks", f"{match.gelu.target} has hooks, which would no longer run")
    if match.approximate not in ("none", "tanh"):
        return _Objection(
            "approximate", f"{match.gelu} takes its formula from {match.approximate!r}, unknown until it runs"
        )
    return None


def _objection_to_users(match: _Match) -> _Objection | None:
    """Object if someone else needs the sum, which would then be computed twice."""
    others = [user for user in match.addition.users if user is not match.gelu]
    if any(user.op == "output" for user in others):
        return _Objection("sum is an output", f"the graph returns {match.addition}, so it must be computed anyway")
    if others:
        names = ", ".join(user.name for user in others)
        return _Objection("other users", f"{match.addition} is also used by {names}, so it must be computed anyway")
    return None


def _operands(match: _Match) -> _Operands | _Objection:
    """Find out which operand is the bias. A sum is the same either way round, so shapes decide, not the order."""
    assert isinstance(match.left, fx.Node)
    assert isinstance(match.right, fx.Node)
    for x, bias in ((match.left, match.right), (match.right, match.left)):
        x_facts, bias_facts = tensor_facts(x), tensor_facts(bias)
        if x_facts is None or bias_facts is None:
            reason = f"the shapes of {x} and {bias} are not both known; run propagate_shapes(gm, example_inputs) first"
            return _Objection("shape unknown", reason)
        if _is_bias(x_facts, bias_facts):
            if x_facts.dtype != bias_facts.dtype:
                reason = f"{x} is {x_facts.dtype} and {bias} is {bias_facts.dtype}; the fused operator takes one dtype"
                return _Objection("dtype", reason)
            return _Operands(x, bias, str(match.approximate))
    reason = f"neither {match.left} nor {match.right} is a 1-D bias over the last dimension of the other"
    return _Objection("bias shape", reason)


def _objection_to_order(match: _Match, operands: _Operands) -> _Objection | None:
    """Object if `x` or the bias changes after the sum was computed.

    The fused call stands where GELU stood, so it reads them later than the addition did. It also keeps them for the
    backward pass, where the two calls kept only the sum; PyTorch refuses to go backward once they have changed.
    """
    changing = mutations_of((operands.x, operands.bias), after=match.addition)
    if not changing:
        return None
    names = ", ".join(node.name for node in changing)
    reason = f"{names} changes {operands.x} or {operands.bias} in place after {match.addition} has read them"
    return _Objection("mutation", reason)


def _is_bias(x: TensorFacts, bias: TensorFacts) -> bool:
    return len(bias.shape) == 1 and len(x.shape) >= 1 and x.shape[-1] == bias.shape[0]


def _rewrite(match: _Match, operands: _Operands) -> None:
    """Put one call of the fused operator where GELU stood, and take away the two calls."""
    graph = match.gelu.graph
    arguments: tuple[object, ...] = (operands.x, operands.bias)
    if operands.approximate != "none":
        arguments = (*arguments, operands.approximate)
    with graph.inserting_before(match.gelu):
        call = graph.call_function(torch.ops.course_lib.bias_gelu, arguments, name="bias_gelu")  # type: ignore[arg-type]
    call.meta = dict(match.gelu.meta)  # shape and source line are those of GELU's result
    match.gelu.replace_all_uses_with(call)
    graph.erase_node(match.gelu)
    graph.erase_node(match.addition)
