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

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_lib.fusion.calls import Call, ModuleAttribute, operator_of
from course_lib.fusion.effects import effects_of
from course_lib.fusion.expressions.projections import MERGED, Kind, Projection, linear_call, projection_of, siblings
from course_lib.fusion.expressions.transposed_products import transposed_products
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.guards import (
    cost_on_fakes,
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
    mutating_nodes,
    propagate_layouts,
    run_node,
    writes_to,
)
from course_lib.fusion.surgery import erase
from course_lib.graph.memory import storage_of

Tensor = torch.Tensor
_BY_POSITION = ("as_strided", "as_strided_copy", "as_strided_scatter", "set_", "resize_")  # operators on a storage


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

    It runs only if requested by name.

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
        for group in siblings(gm):
            projections: list[Projection] = []
            for call in map(linear_call, group):  # read now: a merge may have replaced their input
                if call is None:
                    continue
                found = projection_of(call, writers)
                if isinstance(found, Projection):
                    projections.append(found)
                else:
                    rejected.append(refusal(self.name, (call.node.name,), found, call.node))
            for alike in _by_kind(projections):
                objection = _merge(alike, writers) if len(alike) > 1 else _alone(alike[0], projections)
                if objection is None:
                    num_merged += len(alike) > 1
                else:
                    names = tuple(one.call.node.name for one in alike)
                    rejected.append(refusal(self.name, names, objection, alike[-1].call.node))
        return num_merged, [*rejected, *self._in_another_spelling(gm)]

    def _in_another_spelling(self, gm: fx.GraphModule) -> Iterator[Rejected]:
        """Yield why projections that are written as products are left alone."""
        for x, products in transposed_products(gm.graph).items():
            layers = [user for user in x.users if linear_call(user) is not None]
            if len(products) + len(layers) > 1:
                reason = f"{x} is multiplied by a transposed weight, and only calls of linear are merged"
                yield refusal(
                    self.name, tuple(one.name for one in products), Objection("spelling", reason), products[0]
                )


def _by_kind(projections: Sequence[Projection]) -> list[list[Projection]]:
    groups: dict[Kind, list[Projection]] = {}
    for one in projections:
        if not one.merged:
            groups.setdefault(one.kind, []).append(one)
    return list(groups.values())


def _alone(one: Projection, others: Sequence[Projection]) -> Objection | None:
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


def _merge(group: Sequence[Projection], writers: Writers) -> Objection | None:
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
    product.meta[MERGED] = group[0].kind
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
