"""Linear layers that read one tensor, such as query, key and value: what the pass `qkv_merge` may merge.

`siblings` finds them, and `projection_of` tells what two of them must share, or why one cannot be merged with any.
"""

import itertools
from collections.abc import Sequence, Set
from dataclasses import dataclass

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves

from course_lib.fusion.calls import Call, ModuleAttribute, read_call
from course_lib.fusion.effects import between
from course_lib.fusion.guards import modules_are_plain
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import attribute_of
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import Writers, may_share_memory, mutations_of

Tensor = torch.Tensor
MERGED = "qkv_merge"  # metadata key of a merged product, whose value is the kind of its projections


@dataclass(frozen=True)
class Kind:
    """The properties that projections must share to be merged."""

    bias: bool  # whether there is one
    results: frozenset[int]  # the results of the graph, by position, from which a gradient could reach it
    gradients: tuple[bool, ...]  # whether weight and bias require gradients


@dataclass(frozen=True, eq=False)
class Projection:
    """One linear layer, or call of `F.linear`, as a candidate."""

    call: Call
    kind: Kind
    rows: int  # of its weight: how many columns of the product are its result
    merged: bool = False  # whether it is a merged product


def siblings(gm: fx.GraphModule) -> list[list[fx.Node]]:
    """Return the groups of two or more linear layers that read the same value."""
    groups: dict[object, list[fx.Node]] = {}
    for node in gm.graph.nodes:
        call = linear_call(node)
        if call is not None:
            groups.setdefault(call["input"], []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def linear_call(node: fx.Node) -> Call | None:
    """Return the call of a node that is a linear layer of a value of the graph, or None."""
    call = read_call(node)
    is_linear = call is not None and call.operator.name == "linear" and isinstance(call["input"], fx.Node)
    return call if is_linear else None


def projection_of(call: Call, writers: Writers) -> Projection | Objection:
    """Return a linear layer as a candidate, or an objection; other layers are not considered."""
    node, match = call.node, Match((call,), dict(call.arguments), writers=writers)
    if MERGED in node.meta:
        return Projection(call, node.meta[MERGED], 0, merged=True)
    plain = modules_are_plain(match)
    if plain is not None:
        return plain
    held = [match[name] for name in ("weight", "bias") if match[name] is not None]
    computed = next((value for value in held if not _is_held(value)), None)
    if computed is not None:
        return Objection("argument", f"{node} works with {computed!r}, which is no parameter of the program")
    tensors = [_tensor(match, value) for value in (match["input"], *held)]
    objection = _objection_to_result(node, writers) or _objection_to_tensors(match, tensors)
    if objection is not None:
        return objection
    known = [tensor for tensor in tensors[1:] if tensor is not None]  # all are: none was objected to
    kind = Kind(len(known) > 1, _results_of(node), tuple(tensor.requires_grad for tensor in known))
    return Projection(call, kind, known[0].shape[0])


def _results_of(node: fx.Node) -> frozenset[int]:
    """Return the results of the graph, by position, that depend on a node through operators that have derivatives."""
    reached, unrecorded = {node: None}, _unrecorded(node.graph)
    for one in (waiting := [node]):  # grows while it is read
        leaves = tree_leaves(one.meta.get("val"))
        differentiable = not leaves or any(isinstance(x, Tensor) and x.is_floating_point() for x in leaves)
        if differentiable and one not in unrecorded and not _stops_gradients(one):
            waiting += [user for user in one.users if user not in reached]
            reached |= dict.fromkeys(one.users)
        else:
            del reached[one]
    (returned,) = node.graph.output_node().args
    return frozenset(place for place, leaf in enumerate(tree_leaves(returned)) if leaf in reached)


def _unrecorded(graph: fx.Graph) -> Set[fx.Node]:
    """Return the nodes that run while a switch in the graph keeps autograd from recording."""
    switches = graph.find_nodes(op="call_function", target=torch._C._set_grad_enabled)
    found: set[fx.Node] = set()
    for switch, following in itertools.pairwise((*switches, graph.output_node())):
        if switch.args[:1] == (False,):
            found.update(between(switch, following))
    return found


def _stops_gradients(node: fx.Node) -> bool:
    call = read_call(node)
    is_data = node.target is getattr and node.args[1:] == ("data",)
    is_region = node.target is torch.ops.higher_order.wrap_with_set_grad_enabled and node.args[:1] == (False,)
    return is_data or is_region or (call is not None and call.operator.name == "detach")


def _is_held(value: object) -> bool:
    if isinstance(value, fx.Node):
        return value.op in ("get_attr", "placeholder")
    return isinstance(value, ModuleAttribute)


def _tensor(match: Match, value: object) -> Tensor | None:
    """Return an operand as a tensor, real or fake, or None if it is not known."""
    if isinstance(value, fx.Node) and value.op == "get_attr":
        value = ModuleAttribute(str(value.target))
    known = attribute_of(match, value) if isinstance(value, ModuleAttribute) else None
    if isinstance(value, fx.Node):
        known = value.meta.get("val")
    return known if isinstance(known, Tensor) else None


def _objection_to_result(node: fx.Node, writers: Writers) -> Objection | None:
    """Refuse a result that is changed in place or returned: it will be a slice of memory that others read too."""
    changing = mutations_of((node,), after=node, among=writers)
    if changing:
        return Objection(
            "mutation", f"{changing[0]} may change {node} in place, which would be a part of a larger tensor"
        )
    returned = node.graph.output_node().all_input_nodes
    if any(may_share_memory(node, output) for output in returned if isinstance(output.meta.get("val"), Tensor)):
        return Objection("is an output", f"the graph returns {node}, which would be a part of a larger tensor")
    return None


def _objection_to_tensors(match: Match, tensors: Sequence[Tensor | None]) -> Objection | None:
    """Refuse an input, weight or bias of a tensor subclass, of mixed or integer dtypes, or of unusual shape."""
    node = match.anchor
    known = [tensor for tensor in tensors if tensor is not None]
    if len(known) < len(tensors) or not isinstance(node.meta.get("val"), FakeTensor):
        return Objection("shape unknown", f"the operands of {node} are not known; give example inputs")
    x, weight, *bias = known
    if any(type(tensor) not in (Tensor, torch.nn.Parameter, FakeTensor) for tensor in known):
        return Objection(
            "subclass", f"an operand of {node} is a tensor of a special class, which may compute otherwise"
        )
    if weight.ndim != 2 or x.ndim == 0 or any(one.shape != weight.shape[:1] for one in bias):
        return Objection("shape", f"{node} has a weight of shape {tuple(weight.shape)}; two dimensions can be merged")
    if len({tensor.dtype for tensor in known}) > 1 or not x.dtype.is_floating_point:
        listed = ", ".join(str(tensor.dtype) for tensor in known)
        return Objection("dtype", f"the operands of {node} are {listed}; only one floating-point dtype can be merged")
    return None
