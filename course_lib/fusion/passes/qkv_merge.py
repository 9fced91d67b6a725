"""On request: compute the projections of one tensor, such as query, key and value, by one wider matrix product.

    weight = torch.cat([query.weight, key.weight, value.weight])
    query, key, value = torch.split(F.linear(x, weight, bias), sizes, dim=-1)

The graph uses the parameters of the program and concatenates them each time it runs. So checkpoints are loaded and
saved as before. An optimiser for the parameters of the program or of the graph updates both, because they are the same
objects. Copies, `.to()`, pickles and tied or frozen parameters work too. The weights are read and written once more.
This saves traffic if the input has more rows than the merged weight, and the pass refuses to move more bytes. The
launches are one product, one concatenation of the weights and one of the biases, instead of one product for each
projection.

A weight that no gradient reaches has the gradient None, and an optimiser leaves it alone; with zeros, AdamW would
decay it. So only projections that reach the same results of the graph are merged: a loss of some results gives a
gradient to all of them or to none.

It computes the same real function. It runs only if requested by name, because the merged weight is saved for the
backward pass, and because two projections with biases need one more launch.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.fusion.calls import Call, ModuleAttribute, operator_of, read_call
from course_lib.fusion.effects import between, effects_of
from course_lib.fusion.expressions.transposed_products import transposed_products
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import (
    cost_on_fakes,
    modules_are_plain,
    nothing_is_switched_between,
    objection_to_changes,
    objection_to_traffic,
)
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import attribute_of
from course_lib.fusion.result import Rejected, refusal
from course_lib.fusion.rules import Objection
from course_lib.fusion.storage import (
    Writers,
    describe_values,
    may_share_memory,
    mutating_nodes,
    mutations_of,
    propagate_layouts,
    run_node,
    writes_to,
)
from course_lib.fusion.surgery import erase
from course_lib.graph.memory import storage_of

Tensor = torch.Tensor
_BY_POSITION = ("as_strided", "as_strided_copy", "as_strided_scatter", "set_", "resize_")  # operators on a storage
_MERGED = "qkv_merge"  # metadata key of a merged product, whose value is the kind of its projections


@dataclass(frozen=True)
class _Kind:
    """The properties that projections must share to be merged."""

    bias: bool  # whether there is one
    results: frozenset[int]  # the results of the graph, by position, from which a gradient could reach it
    gradients: tuple[bool, ...]  # whether weight and bias require gradients


@dataclass(frozen=True, eq=False)
class _Projection:
    """One linear layer, or call of `F.linear`, as a candidate."""

    call: Call
    kind: _Kind
    rows: int  # of its weight: how many columns of the product are its result
    merged: bool = False  # whether this pass made it


class _ReadersOfMemory(TorchDispatchMode):
    """Watch for operators that read the memory of given values by position, whatever the shape of the value."""

    def __init__(self, values: Mapping[fx.Node, object]) -> None:
        super().__init__()
        self._values = values  # grows while it is watched
        self.seen = ""  # the name of such an operator

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func._schema.name.rpartition("::")[2] in _BY_POSITION:
            storages = {storage_of(one) for one in tree_leaves(list(self._values.values())) if isinstance(one, Tensor)}
            if storage_of(args[0]) in storages:
                self.seen = func._schema.name.rpartition("::")[2]
        return func(*args, **(kwargs or {}))


class QkvMerge(GraphPass):
    """Merge two or more projections of the same kind and the same input into one matrix product.

    >>> from course_lib.fusion import fuse
    >>> def program(x, query, key):
    ...     return F.linear(x, query) * F.linear(x, key)
    >>> result = fuse(program, (torch.zeros(40, 4), torch.zeros(4, 4), torch.zeros(4, 4)), ("qkv_merge",))
    >>> result.num_matches, result.cost_before.bytes_moved, result.cost_after.bytes_moved
    (1, 4608, 4224)
    """

    name = "qkv_merge"
    by_default = False

    def transform(self, gm: fx.GraphModule) -> tuple[int, list[Rejected]]:
        """Merge each group of projections that may be merged; count the groups."""
        rejected: list[Rejected] = []
        num_merged = 0
        writers = mutating_nodes(gm.graph)
        for siblings in _siblings(gm):
            projections: list[_Projection] = []
            for call in map(_linear, siblings):  # read now: a merge may have replaced their input
                if call is None:
                    continue
                found = _projection(call, writers)
                if isinstance(found, _Projection):
                    projections.append(found)
                else:
                    rejected.append(refusal(self.name, (call.node.name,), found, call.node))
            for group in _by_kind(projections):
                objection = _merge(group, writers) if len(group) > 1 else _alone(group[0], projections)
                if objection is None:
                    num_merged += len(group) > 1
                else:
                    names = tuple(one.call.node.name for one in group)
                    rejected.append(refusal(self.name, names, objection, group[-1].call.node))
        return num_merged, [*rejected, *self._in_another_spelling(gm)]

    def _in_another_spelling(self, gm: fx.GraphModule) -> Iterator[Rejected]:
        """Yield why projections that are written as products are left alone."""
        for x, products in transposed_products(gm.graph).items():
            layers = [user for user in x.users if _linear(user) is not None]
            if len(products) + len(layers) > 1:
                reason = f"{x} is multiplied by a transposed weight, and only calls of linear are merged"
                yield refusal(
                    self.name, tuple(one.name for one in products), Objection("spelling", reason), products[0]
                )


def _siblings(gm: fx.GraphModule) -> list[list[fx.Node]]:
    """Return the groups of two or more linear layers that read the same value."""
    groups: dict[object, list[fx.Node]] = {}
    for node in gm.graph.nodes:
        call = _linear(node)
        if call is not None:
            groups.setdefault(call["input"], []).append(node)
    return [group for group in groups.values() if len(group) > 1]


def _linear(node: fx.Node) -> Call | None:
    call = read_call(node)
    is_linear = call is not None and call.operator.name == "linear" and isinstance(call["input"], fx.Node)
    return call if is_linear else None


def _by_kind(projections: Sequence[_Projection]) -> list[list[_Projection]]:
    groups: dict[_Kind, list[_Projection]] = {}
    for one in projections:
        if not one.merged:
            groups.setdefault(one.kind, []).append(one)
    return list(groups.values())


def _alone(one: _Projection, others: Sequence[_Projection]) -> Objection | None:
    """Return an objection that says how a projection differs from another, or None if it is the only one."""
    other = next((other for other in others if other is not one), None)
    if other is None:
        return None
    pair = f"{one.call.node} and {other.call.node}"
    if one.kind.bias != other.kind.bias:
        plain = other.call.node if one.kind.bias else one.call.node
        added = next((user for user in plain.users if (operator := operator_of(user)) and operator.name == "add"), None)
        late = "" if added is None else f", since what {added} adds does not count as one"
        return Objection("one bias", f"one of {pair} has a bias and the other has none{late}")
    if one.kind.results != other.kind.results:
        unread = one if not one.kind.results >= other.kind.results else other
        whole = "no gradient can reach" if not unread.kind.results else "a loss of some results has no gradient of"
        reason = f"{whole} {unread.call.node}, and merged, its weight would have a gradient of zeros in place of None"
        return Objection("no gradient", reason)
    return Objection("frozen", f"gradients are asked for in one of {pair} that are not in the other")


def _projection(call: Call, writers: Writers) -> _Projection | Objection:
    """Return a linear layer as a candidate, or an objection; other layers are not considered."""
    node, match = call.node, Match((call,), dict(call.arguments), writers=writers)
    if _MERGED in node.meta:
        return _Projection(call, node.meta[_MERGED], 0, merged=True)
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
    kind = _Kind(len(known) > 1, _results_of(node), tuple(tensor.requires_grad for tensor in known))
    return _Projection(call, kind, known[0].shape[0])


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


def _merge(group: Sequence[_Projection], writers: Writers) -> Objection | None:
    """Replace a group by one product, or return an objection and do not change the graph."""
    calls = [one.call for one in group]
    operands = {f"{name} {number}": call[name] for number, call in enumerate(calls) for name in ("weight", "bias")}
    match = Match(tuple(reversed(calls)), {"x": calls[0]["input"], **operands}, writers=writers)
    objection = nothing_is_switched_between(match) or _objection_to_changes(match, writers)
    if objection is not None:
        return objection
    added, parts = _write(calls, [one.rows for one in group])
    product = next(node for node in added if node.target is F.linear)
    values: dict[fx.Node, object] = {}
    objection = _tried(match, added, parts, values)
    if objection is not None:
        for node in reversed(added):
            node.graph.erase_node(node)
        return objection
    product.meta[_MERGED] = group[0].kind
    for call, part in zip(calls, parts, strict=True):
        call.node.replace_all_uses_with(part)
    describe_values({node: value for node, value in values.items() if node.op != "get_attr"})
    erase(match.nodes)
    return None


def _objection_to_changes(match: Match, writers: Writers) -> Objection | None:
    """Return why the projections cannot be merged because of in-place changes, or None if they can.

    The merged product stands at the first projection and reads all operands there, so none may change after it.
    """
    read = frozenset().union(*(effects_of(node).reads for node in match.nodes))
    changing = writes_to(read, after=match.nodes[0], among=writers)
    return objection_to_changes(match, match.nodes[0], changing) if changing else None


def _write(calls: Sequence[Call], sizes: Sequence[int]) -> tuple[list[fx.Node], list[fx.Node]]:
    """Write the product before the first call; return all new nodes, and the nodes of the parts."""
    first = calls[0].node
    graph, known = first.graph, set(first.graph.nodes)
    tracer = fx.proxy.GraphAppendingTracer(graph)

    def proxy(value: object) -> fx.Proxy:
        node = value
        if isinstance(value, ModuleAttribute) or (isinstance(value, fx.Node) and value.op == "get_attr"):
            # It may stand after the first call.
            node = graph.create_node("get_attr", value.path if isinstance(value, ModuleAttribute) else value.target)
        assert isinstance(node, fx.Node), "operands were seen to be parameters or inputs"
        return fx.Proxy(node, tracer)

    with graph.inserting_before(first):
        weight, bias = (
            None if calls[0][name] is None else torch.cat([proxy(call[name]) for call in calls])  # type: ignore[misc]
            for name in ("weight", "bias")
        )
        product = F.linear(proxy(calls[0]["input"]), weight, bias)  # type: ignore[arg-type]  # proxies
        parts = torch.split(product, list(sizes), dim=-1)
        nodes = [parts[number].node for number in range(len(sizes))]  # type: ignore[attr-defined]  # a proxy too
    added = [node for node in graph.nodes if node not in known]
    for node in added:
        node.meta.update({key: first.meta[key] for key in ("stack_trace", "nn_module_stack") if key in first.meta})
    return added, nodes


def _tried(
    match: Match, added: Sequence[fx.Node], parts: Sequence[fx.Node], values: dict[fx.Node, object]
) -> Objection | None:
    """Try the new nodes and all readers of their parts on fake tensors; refuse a difference or a higher cost."""
    found: list[Sequence[fx.Node] | Objection] = []

    def merged() -> None:
        for node in added:
            held = ModuleAttribute(str(node.target))
            values[node] = attribute_of(match, held) if node.op == "get_attr" else run_node(node, values)
        values.update({node: values[part] for node, part in zip(match.nodes, parts, strict=True)})
        with _ReadersOfMemory(values) as readers:
            found.append(propagate_layouts(values))
        if readers.seen:
            found[0] = Objection("strides", f"{readers.seen} reads the memory of a projection by its position")

    mode = match.anchor.meta["val"].fake_mode
    after = cost_on_fakes(merged, mode)
    (readers,) = found
    if isinstance(readers, Objection):
        return readers
    before = cost_on_fakes(lambda: [run_node(node, {}) for node in (*match.nodes, *readers)], mode)
    return objection_to_traffic(
        before, after, "the weights are put side by side on each run, which pays with more rows"
    )
