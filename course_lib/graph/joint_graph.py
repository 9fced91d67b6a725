"""Describe the joint graph of AOTAutograd as rows with the cost of each value, and partition it by a choice of values.

Private: `torch._functorch.partitioners` may move, and so may the tags that AOTAutograd leaves at nodes.
"""

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch import fx

from course_lib.errors import GraphError
from course_lib.graph.cost import flops_of

Row = dict[str, Any]
Partition = Callable[..., tuple[fx.GraphModule, fx.GraphModule]]


def joint_rows(joint: fx.GraphModule) -> list[Row]:
    """Return a row for each value of a joint graph, in order.

    A row has the `name` of the node, its `op`, the names it reads as `args`, its `part` ("forward" or "backward"), its
    `tag`, its `bytes`, and the `flops` of computing it: one for each element of a pointwise result. Tags are "input",
    "view" (no memory of its own), "pointwise", "product", "random", and "reduction" for everything else. If an
    operator returns several values, each has a row.

    Raises `GraphError` for a graph that AOTAutograd did not make.
    """
    nodes = [node for node in joint.graph.nodes if node.op in ("placeholder", "call_function")]
    if not any("partitioner_tag" in node.meta for node in nodes):
        raise GraphError("joint_rows takes the joint graph of AOTAutograd, as a partition function receives it.")
    return [_row(node) for node in nodes if isinstance(node.meta["val"], torch.Tensor)]


def cut_at(choose: Callable[[list[Row]], Sequence[str]]) -> Partition:
    """Return a partition function for AOTAutograd that saves the values which `choose` names, given the rows.

    Inputs that backward reads are saved as well. Other values that backward reads and that are not saved are recomputed
    there. Recomputed random numbers differ from those of the forward pass, so `choose` has to save them.
    """

    def partition(
        joint: fx.GraphModule, inputs: object, *, num_fwd_outputs: int, **options: object
    ) -> tuple[fx.GraphModule, fx.GraphModule]:
        from torch._functorch.partitioners import _extract_fwd_bwd_modules

        rows = joint_rows(joint)
        names = {row["name"] for row in rows if row["part"] == "forward" and row["tag"] == "input"}
        names |= set(choose(rows))
        if unknown := names - {row["name"] for row in rows}:
            raise GraphError(
                f"The joint graph has no value {sorted(unknown)[0]!r}; choose among the names of its rows."
            )
        saved = [node for node in joint.graph.nodes if node.name in names]
        return _extract_fwd_bwd_modules(joint, saved, [], num_fwd_outputs=num_fwd_outputs)

    return partition


def saved_bytes(forward: fx.GraphModule, *, results: int = 1) -> int:
    """Return the bytes that a forward graph saves for its backward: outputs after the first `results`, without inputs.

    A view counts as its base, and a base that is saved twice counts once.
    """
    (output,) = forward.graph.find_nodes(op="output")
    owners = {_owner(node) for node in output.args[0][results:] if isinstance(node, fx.Node)}
    return sum(node.meta["val"].nbytes for node in owners if node.op != "placeholder")


def _row(node: fx.Node) -> Row:
    value, source = node.meta["val"], _operator(node)
    tag = _tag(node)
    flops = prod(value.shape) if tag == "pointwise" else 0
    if tag == "product":
        args, kwargs = fx.node.map_arg((source.args, source.kwargs), lambda read: read.meta["val"])
        flops = flops_of(source.target, args, kwargs, value)
    return {
        "name": node.name,
        "op": "input" if tag == "input" else _name(source),
        "args": [read.name for read in source.all_input_nodes if isinstance(read.meta["val"], torch.Tensor)],
        "part": "backward" if node.meta.get("partitioner_tag") == "is_backward" else "forward",
        "tag": tag,
        "bytes": value.nbytes,
        "flops": flops,
    }


def _operator(node: fx.Node) -> fx.Node:
    """Return the node that computes a value: for one of several outputs, the operator that returns all of them."""
    return node.all_input_nodes[0] if node.target is operator.getitem else node


def _overload(node: fx.Node) -> torch._ops.OpOverload:
    target = _operator(node).target
    assert isinstance(target, torch._ops.OpOverload), "a joint graph calls operators of the dispatcher"
    return target


def _name(node: fx.Node) -> str:
    """Return the name of the operator without namespace and overload: "mul" for `torch.ops.aten.mul.Tensor`."""
    return str(_overload(node)._schema.name).rpartition("::")[2]


def _tag(node: fx.Node) -> str:
    if node.op == "placeholder":
        return "input"
    if torch.Tag.nondeterministic_seeded in _overload(node).tags:
        return "random"
    if torch.Tag.pointwise in _overload(node).tags:
        return "pointwise"
    if any(value.alias_info is not None for value in _overload(node)._schema.returns):
        return "view"
    return "product" if _name(node) in ("mm", "bmm", "addmm") else "reduction"


def _owner(node: fx.Node) -> fx.Node:
    while node.op == "call_function" and _tag(node) == "view":
        node = node.all_input_nodes[0]
    return node
