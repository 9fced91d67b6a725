"""From a captured graph to one that holds nothing but operators, tensors and plain arguments.

Only form changes here: which devices and layouts stand beside a factory, checks of sizes, and `torch.cond`, which
becomes both branches and a `where`. What the host gets still has to be right by itself.
"""

import operator
from typing import Any

import torch
from torch import fx
from torch.fx.graph import CodeGen
from torch.utils._pytree import tree_leaves

ATEN = torch.ops.aten
CHECKS = (
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "_assert_async",
)
FORM = ("device", "layout", "pin_memory")


def plain(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Return a graph module that is nothing but the graph, made plain; its output is a flat tuple."""
    graph = graph_module.graph
    graph.set_codegen(CodeGen())
    output = next(iter(graph.find_nodes(op="output")))
    output.args = (tuple(tree_leaves(output.args)),)
    while branching := graph.find_nodes(op="call_function", target=torch.ops.higher_order.cond):
        for node in branching:
            _both_branches(graph_module, node)
    for node in reversed(graph.find_nodes(op="placeholder")):
        next(iter(graph.nodes)).prepend(node)  # export puts constants before inputs
    for node in list(graph.nodes):
        if _overload_name(node) in CHECKS:
            graph.erase_node(node)
        elif node.op == "call_function":
            _simplify(node)
    _drop_sizes_nobody_reads(graph)
    return fx.GraphModule(graph_module, graph)  # export hangs hooks on its own


def _overload_name(node: fx.Node) -> str:
    packet = getattr(node.target, "overloadpacket", None)
    return str(getattr(packet, "__name__", ""))


def _simplify(node: fx.Node) -> None:
    if node.target is ATEN.detach_.default:
        node.target = ATEN.detach.default  # of a constant: `torch.tensor(0.1)` in a captured function
    node.kwargs = {k: v for k, v in node.kwargs.items() if k not in FORM and v is not None}
    if isinstance(node.kwargs.get("memory_format"), torch.memory_format):
        solid = node.kwargs["memory_format"] is torch.contiguous_format
        node.kwargs = {k: v for k, v in node.kwargs.items() if k != "memory_format"}
        if solid:
            with node.graph.inserting_after(node):
                new = node.graph.call_function(ATEN.contiguous.default, (node,))
            node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def _drop_sizes_nobody_reads(graph: fx.Graph) -> None:
    """Erase what is left of the checks: sizes and what was computed from them, all without effect."""
    for node in reversed(list(graph.nodes)):
        of_size = node.target is ATEN.sym_size.int or getattr(node.target, "__module__", "") == "_operator"
        reads_tensor = any(isinstance(a.meta.get("val"), torch.Tensor) for a in node.all_input_nodes)
        if (
            node.op == "call_function"
            and not node.users
            and of_size
            and (not reads_tensor or node.target is ATEN.sym_size.int)
        ) or (node.op == "get_attr" and not node.users):
            graph.erase_node(node)


def _both_branches(graph_module: fx.GraphModule, node: fx.Node) -> None:
    """Compute both branches, which may have no effects, and choose each result with `where`."""
    predicate, yes, no, operands = node.args
    assert isinstance(yes, fx.Node)
    assert isinstance(no, fx.Node)
    graph = graph_module.graph
    with graph.inserting_before(node):
        results = [_inlined(graph, graph_module, branch, operands) for branch in (yes, no)]
        chosen = [graph.call_function(ATEN.where.self, (predicate, a, b)) for a, b in zip(*results, strict=True)]
    for user in list(node.users):
        assert user.target is operator.getitem, "torch.cond gives a tuple"
        user.replace_all_uses_with(chosen[user.args[1]])  # type: ignore[index]  # an int, by the line above
        graph.erase_node(user)
    graph.erase_node(node)


def _inlined(graph: fx.Graph, graph_module: fx.GraphModule, branch: fx.Node, operands: Any) -> list[Any]:
    path = str(branch.target)
    body = graph_module.get_submodule(path)
    assert isinstance(body, fx.GraphModule)
    new: dict[fx.Node, Any] = {}
    given = iter(operands)
    for node in body.graph.nodes:
        if node.op == "placeholder":
            new[node] = next(given)
        elif node.op == "output":
            return [new[leaf] for leaf in tree_leaves(node.args)]
        else:
            new[node] = graph.node_copy(node, lambda n: new[n])
            if node.op == "get_attr":
                new[node].target = f"{path}.{node.target}"
    raise AssertionError("a graph ends in its output")
