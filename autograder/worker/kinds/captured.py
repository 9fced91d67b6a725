"""Capture an answer that is a function: its graph is sent as data, and the function itself stays here.

The host decides whether a capture is complete: a graph that is right for inputs that the function has never seen
contains all its operators.
"""

import operator
import re
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch.fx.graph import CodeGen
from torch.utils._pytree import tree_leaves

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.answers import (
    AskMember,
    Called,
    CallFunction,
    Capture,
    Collect,
    CollectedGraphs,
    Value,
    WrittenGraph,
)
from autograder.worker.kinds.collected_graphs import collected
from autograder.worker.kinds.exported import exported, with_size_checks
from autograder.worker.kinds.graph import written
from autograder.worker.kinds.value import plain_data
from autograder.worker.operator_recorder import recorded
from autograder.worker.source import AnswerError, NoEntryPointError
from autograder.worker.tensors import call_on_tensors, to_torch
from autograder.worker.untimed_guards import leave_guards_untimed

ATEN = torch.ops.aten
CHECKS = ("_assert_", "sym_constrain_range")  # how their names begin
FORM = ("device", "layout", "pin_memory")
FIXED = re.compile(r"specialized it to be a constant \((\d+)\)")


class NotOneGraphError(AnswerError):
    """Dynamo does not capture the function as one graph."""


def captured_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a captured answer."""

    def capture(request: Capture, tensors: Tensors) -> Result[WrittenGraph]:
        inputs = [to_torch(raw) for raw in tensors]
        function = _member(entry, request.member)
        if request.how == "export":
            program = exported(function, inputs)
            graph_module = _plain(program.module(check_guards=False))
            return written(with_size_checks(graph_module, program.range_constraints))
        function(*[i.clone() for i in inputs])  # if the function raises, report its own exception and not Dynamo's
        capture_graph = {"dynamo": _with_dynamo, "dispatch": _by_dispatch}[request.how]
        captured = capture_graph(function, inputs, request.dynamic)
        return written(_plain(captured))

    def ask(request: AskMember, _: Tensors) -> Result[Value]:
        return Result(Value(plain_data(_member(entry, request.member)(request.question), "the result")))

    def call(request: CallFunction, tensors: Tensors) -> Result[Called]:
        return call_on_tensors(_member(entry, request.function), request.call, tensors)

    def collect(request: Collect, tensors: Tensors) -> Result[CollectedGraphs]:
        return collected(_member(entry, request.member), request, tensors)

    return {Capture: capture, AskMember: ask, CallFunction: call, Collect: collect}


def _member(entry: Callable[..., Any], name: str) -> Callable[..., Any]:
    if not name:
        return entry
    functions = entry()
    if not isinstance(functions, dict):
        raise NoEntryPointError(
            f"The answer returned a {type(functions).__name__}; return a dict from each name to its function."
        )
    if not callable(functions.get(name)):
        raise NoEntryPointError(f"The dict that the answer returned has no function {name!r}.")
    return functions[name]


def _with_dynamo(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]]
) -> fx.GraphModule:
    """Capture the function with Dynamo as one graph; `torch.export` returns it with ATen operators and constants."""
    from torch._dynamo.exc import TorchDynamoException
    from torch._functorch.predispatch import _vmap_increment_nesting
    from torch.export import Dim, export

    leave_guards_untimed()
    shapes = tuple(dict.fromkeys(dims, Dim.DYNAMIC) or None for dims in dynamic) or None
    torch._dynamo.reset()
    try:
        # fullgraph refuses code that export ignores, such as a print
        torch.compile(function, fullgraph=True, backend="eager")(*[i.clone() for i in inputs])
        exported = export(_Program(function), tuple(inputs), strict=True, dynamic_shapes=shapes and (shapes,))
    except TorchDynamoException as error:
        if fixed := FIXED.search(str(error)):
            raise NotOneGraphError(
                f"The function fixes a size that should stay open to {fixed[1]}: it branches on it, loops over it, or "
                "makes a Python number of it that the graph keeps."
            ) from None
        raise NotOneGraphError(f"Dynamo cannot capture the function as one graph: {_first(error)}") from None
    # `torch.vmap` becomes private calls around operators on one row, of which this is the first
    if exported.graph.find_nodes(op="call_function", target=_vmap_increment_nesting):
        exported = exported.run_decompositions({})
    return exported.module(check_guards=False)


class _Program(torch.nn.Module):
    """The function as a module, since export takes modules only."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: torch.Tensor) -> Any:
        return self.function(*inputs)


def _by_dispatch(
    function: Callable[..., Any], inputs: Sequence[torch.Tensor], dynamic: Sequence[Sequence[int]]
) -> fx.GraphModule:
    """Return a graph of the ATen operators that run when the function is called once, including writes and views."""
    if not any(dynamic):
        return recorded(function, inputs)
    from torch.fx.experimental.proxy_tensor import make_fx

    def of_inputs_only(*given: torch.Tensor) -> Any:
        return function(*given)  # `make_fx` would take a default for one more input

    return make_fx(of_inputs_only, tracing_mode="symbolic")(*inputs)


def _first(error: Exception) -> str:
    """Return the first line of Dynamo's message, and the line of the answer that it refers to."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    at = next((i for i, line in enumerate(lines) if line.startswith('File "<answer')), None)
    where = f" At `{lines[at + 1]}`." if at is not None and at + 1 < len(lines) else ""
    return f"{lines[0].rstrip('.')}.{where}" if lines else type(error).__name__


def _plain(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Convert a graph to one that contains only operators, tensors and plain arguments; its output is a flat tuple.

    This removes device and layout arguments of factory functions and checks of sizes. It replaces `torch.cond` by both
    branches and a `where`. The host still checks that the graph is right.
    """
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
        if getattr(getattr(node.target, "overloadpacket", None), "__name__", "").startswith(CHECKS):
            graph.erase_node(node)
        elif node.op == "call_function":
            _simplify(node)
    _drop_sizes_nobody_reads(graph)
    return fx.GraphModule(graph_module, graph)  # without the hooks of the exported module


def _simplify(node: fx.Node) -> None:
    if node.target is ATEN.detach_.default:
        node.target = ATEN.detach.default  # of a constant: `torch.tensor(0.1)` in a captured function
    if node.target is ATEN.to.device:  # `x.to(y)`; all tensors are on one device
        node.target, node.args = ATEN.to.dtype, (node.args[0], *node.args[2:])
    node.kwargs = {k: v for k, v in node.kwargs.items() if k not in FORM and v is not None}
    if isinstance(node.kwargs.get("memory_format"), torch.memory_format):
        solid = node.kwargs["memory_format"] is torch.contiguous_format
        node.kwargs = {k: v for k, v in node.kwargs.items() if k != "memory_format"}
        if solid:
            with node.graph.inserting_after(node):
                new = node.graph.call_function(ATEN.contiguous.default, (node,))
            node.replace_all_uses_with(new, delete_user_cb=lambda user: user is not new)


def _drop_sizes_nobody_reads(graph: fx.Graph) -> None:
    """Erase nodes that only the erased checks used: sizes and values computed from them."""
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
        user.replace_all_uses_with(chosen[user.args[1]])  # type: ignore[index]  # an int, since `user` is a getitem
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
