"""Compute during the pass the values that do not depend on any input: `math.sqrt(64)`, `torch.ones(4, 4).tril()`.

Parameters and buffers are not constants: a checkpoint may change them, and gradients flow into them. A result that is
changed in place, or that the graph returns, is not folded: each run must return a new tensor.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from course_lib.fusion.calls import module_of
from course_lib.fusion.effects import is_repeatable
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import objection_to_crossing
from course_lib.fusion.inserted_modules import Constant
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import Writers, may_share_memory, mutating_nodes, mutations_of
from course_lib.fusion.surgery import new_constant

MAX_BYTES = 16 * 2**20  # of one folded tensor: a larger one costs more to keep than to compute


class ConstantFolding(GraphPass):
    """Replace nodes that depend on no input by their values."""

    name = "constant_folding"

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Replace computed constants by stored tensors or numbers, if a node that is not constant uses them.

        Return how many were replaced, and why the others were not.
        """
        writers = mutating_nodes(gm.graph)
        constant: set[fx.Node] = set()
        for node in gm.graph.nodes:
            operands = node.all_input_nodes
            if constant.issuperset(operands) and _is_constant(node) and not _is_written(operands, writers):
                constant.add(node)
        known: dict[fx.Node, Any] = {}
        folded = 0
        rejected: list[Rejected] = []
        for node in list(gm.graph.nodes):
            if node not in constant or node.op == "call_module" or all(user in constant for user in node.users):
                continue
            objection = _objection(node, writers)
            if objection is None:
                _fold(gm, node, _value(node, known))
                folded += 1
            else:
                rejected.append(refusal(self.name, (node.name,), objection, node))
        return folded, rejected


def _is_constant(node: fx.Node) -> bool:
    """Return whether constant operands give a node a constant result; False for a new leaf with `requires_grad`."""
    if node.op == "call_module":
        return isinstance(module_of(node), Constant)
    is_call = node.op in ("call_function", "call_method")
    return is_call and is_repeatable(node) and not node.kwargs.get("requires_grad", False)


def _objection(node: fx.Node, writers: Writers) -> Objection | None:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None if isinstance(value, (bool, int, float)) else Objection("shape unknown", f"{node} is no tensor")
    if value.numel() * value.element_size() > MAX_BYTES:
        return Objection("traffic", f"{node} has {value.numel():,} elements; it is cheaper to compute than to keep")
    switch = next((other for other in writers.opaque if other < node), None)
    if switch is not None:
        return objection_to_crossing(switch)
    changing = mutations_of((node,), after=node, among=writers)
    if changing:
        return Objection("mutation", f"{changing[0]} changes {node} in place, so each run needs a new one")
    if any(may_share_memory(node, output) for output in node.graph.output_node().all_input_nodes):
        return Objection("is an output", f"the graph returns {node}, and each run must give a new tensor")
    return None


def _is_written(operands: list[fx.Node], writers: Writers) -> bool:
    """Return whether a constant operand changes in place somewhere, so that its readers depend on the order."""
    return any(mutations_of((operand,), after=operand, among=writers) for operand in operands)


def _fold(gm: fx.GraphModule, node: fx.Node, value: Any) -> None:
    """Let those users of a node that are not constant themselves read its value."""
    if isinstance(value, torch.Tensor):
        node.replace_all_uses_with(new_constant(gm, node, Constant(value)))
        return
    for user in list(node.users):
        user.args = fx.map_arg(user.args, lambda given: value if given is node else given)
        user.kwargs = fx.map_arg(user.kwargs, lambda given: value if given is node else given)


def _value(node: fx.Node, known: dict[fx.Node, Any]) -> Any:
    """Compute the value of a node that depends only on literals and on constants, and keep it in `known`."""
    needed = {node: None}
    waiting = [node]
    while waiting:
        new = [one for one in waiting.pop().all_input_nodes if one not in known and one not in needed]
        needed |= dict.fromkeys(new)
        waiting += new
    for one in sorted(set(needed) - known.keys()):  # in graph order, so that operands come first
        args: Any = fx.map_arg(one.args, known.__getitem__)
        kwargs: Any = fx.map_arg(one.kwargs, known.__getitem__)
        with torch.inference_mode(False), torch.no_grad():  # a tensor of inference mode could never be trained on
            known[one] = _called(one)(*args, **kwargs)
    return known[node]


def _called(node: fx.Node) -> Callable[..., Any]:
    if node.op == "call_module":
        return module_of(node)
    if node.op == "call_method":
        return lambda first, *args, **kwargs: getattr(first, str(node.target))(*args, **kwargs)
    return node.target  # type: ignore[return-value]  # that of a call of a function
