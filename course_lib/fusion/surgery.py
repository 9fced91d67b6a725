"""Change a copy of a graph: copy it, extract a part, insert a replacement, describe new nodes, and clean up."""

import bisect
import copy
import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from course_lib.capture.captured import picklable
from course_lib.errors import FusionError
from course_lib.fusion.calls import Call, ModuleAttribute, Operand
from course_lib.fusion.effects import between, describe_attribute, forget
from course_lib.fusion.inserted_modules import Constant
from course_lib.fusion.kept_state import KeptGraph, keep_state
from course_lib.fusion.matching import Match
from course_lib.fusion.operands import SYMBOLIC
from course_lib.fusion.storage import mutations_of, run_node
from course_lib.graph.memory import storage_of

Write = Callable[[fx.Graph, fx.Node, Mapping[Operand, fx.Node]], fx.Node]
Lifted = tuple[fx.Graph, dict[Operand, fx.Node]]


def copy_of(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a graph module with a copy of the graph; it shares parameters and modules with `gm`."""
    if not isinstance(gm, fx.GraphModule):
        raise FusionError(f"A pass got a {type(gm).__name__}; it expects a torch.fx.GraphModule, see capture().")
    copied = KeptGraph(gm, copy.deepcopy(gm.graph), class_name=type(gm).__name__)
    copied.meta = dict(gm.meta)
    keep_state(copied, gm)
    return picklable(copied)


def added_buffers(gm: fx.GraphModule, program: object) -> frozenset[str]:
    """Return the paths of tensors that torch.fx registered as buffers, and `program` does not have."""
    known = dict(program.named_buffers()) if isinstance(program, torch.nn.Module) else {}
    return frozenset(path for path, _ in gm.named_buffers() if path not in known)


def keep_out_of_state(gm: fx.GraphModule, paths: frozenset[str], state: Mapping[str, torch.Tensor]) -> None:
    """Turn the buffers at these paths into constants, or into buffers that are not saved if they are views of `state`.

    They are tensors that the program makes in each run, such as `torch.tensor(2.0)`, so no checkpoint holds them.
    """
    storages = set(map(storage_of, state.values()))
    new = {path: tensor for path, tensor in gm.named_buffers() if path in paths}
    for path in [path for path, tensor in new.items() if storage_of(tensor) in storages]:
        parent, _, name = path.rpartition(".")
        gm.get_submodule(parent).register_buffer(name, new.pop(path), persistent=False)
    for node in gm.graph.find_nodes(op="get_attr"):
        path = str(node.target)
        if path in new and not mutations_of((node,), after=node):
            if node.users:
                node.replace_all_uses_with(new_constant(gm, node, Constant(new[path])))
            gm.graph.erase_node(node)
    named = {str(node.target) for node in gm.graph.find_nodes(op="get_attr")}
    for path in new.keys() - named:
        parent, _, name = path.rpartition(".")
        delattr(gm.get_submodule(parent), name)
    if new:
        finish(gm)


def lift(nodes: Iterable[fx.Node], inputs: Mapping[Operand, str], write: Write | None = None) -> Lifted:
    """Return a graph that computes `nodes`, without its output, and the new node of each old one.

    `inputs` names the placeholder of each operand from outside. `write` writes one node into the new graph, given the
    values so far; without it, nodes are copied.
    """
    graph = fx.Graph()
    values: dict[Operand, fx.Node] = {operand: graph.placeholder(name) for operand, name in inputs.items()}
    for node in nodes:
        values[node] = _copied(graph, node, values) if write is None else write(graph, node, values)
    return graph, values


def excerpt(match: Match) -> tuple[fx.GraphModule, Sequence[Operand]] | None:
    """Return a graph of the matched operators, and its inputs; None if that is not possible.

    Parameters become inputs too, so that the state dict does not change: a module with parameters is replaced by its
    operator. That is not possible if the operator has a flag that follows the module, like BatchNorm.
    """
    owner = match.anchor.graph.owning_module
    calls = {call.node: call for call in sorted(match.calls, key=lambda call: call.node)}
    operands = list(dict.fromkeys(value for call in calls.values() for value in _operands(call, calls)))
    if owner is None or not all(
        isinstance(value, fx.Node) or isinstance(attrgetter(value.path)(owner), torch.Tensor) for value in operands
    ):
        return None

    def write(graph: fx.Graph, node: fx.Node, values: Mapping[Operand, fx.Node]) -> fx.Node:
        new = _operator(graph, calls[node], values) if _has_state(calls[node]) else _copied(graph, node, values)
        new.meta = {key: value for key, value in node.meta.items() if key == "stack_trace"}
        return new

    graph, values = lift(calls, {value: f"operand_{number}" for number, value in enumerate(operands)}, write)
    graph.output(values[match.anchor])
    return picklable(fx.GraphModule(owner, graph, class_name="Written")), operands


def put_in_place_of(anchor: fx.Node, replacement: Callable[..., object], operands: Mapping[str, object]) -> fx.Node:
    """Insert the calls of `replacement` before `anchor`, and replace `anchor` by the result.

    `replacement` is plain PyTorch. It runs once, on a proxy for each operand that is a node or belongs to a module, and
    on the literals themselves. The new nodes have the source line of `anchor`.
    """
    graph = anchor.graph
    tracer = fx.proxy.GraphAppendingTracer(graph)
    before = anchor.prev
    with graph.inserting_before(anchor):
        result = replacement(**{name: _as_proxy(graph, tracer, value) for name, value in operands.items()})
    new = result.node if isinstance(result, fx.Proxy) else result
    assert isinstance(new, fx.Node), "a replacement returns what one of its calls gave"
    added = list(between(before, anchor))
    for node in added:
        if not node.users and node is not new:  # an operand that the replacement does not use
            graph.erase_node(node)
        else:
            node.meta.update(
                {key: anchor.meta[key] for key in ("stack_trace", "nn_module_stack", SYMBOLIC) if key in anchor.meta}
            )
    if new in added:
        new.meta = dict(anchor.meta)  # shape and type of the result are those of the anchor's
        forget(new)
    anchor.replace_all_uses_with(new)
    return new


def put_module_in_place_of(anchor: fx.Node, name: str, module: torch.nn.Module, operands: Sequence[Operand]) -> fx.Node:
    """Replace `anchor` by a call of `module`; its name in the graph is `name` with the next free number."""
    owner = anchor.graph.owning_module
    assert owner is not None, "a pass works on the graph of a GraphModule"
    path = add_module(owner, name, module)

    def call(**proxies: fx.Proxy) -> fx.Proxy:
        node = anchor.graph.call_module(path, tuple(proxy.node for proxy in proxies.values()))
        return fx.Proxy(node, fx.proxy.GraphAppendingTracer(anchor.graph))

    return put_in_place_of(anchor, call, {f"operand_{number}": value for number, value in enumerate(operands)})


def new_constant(gm: fx.GraphModule, node: fx.Node, module: torch.nn.Module) -> fx.Node:
    """Add a module without inputs, and return a call of it before `node`, with the metadata of `node`."""
    path = add_module(gm, "constant", module)
    with gm.graph.inserting_before(node):
        new = gm.graph.call_module(path)
    new.meta = dict(node.meta)
    forget(new)
    return new


def add_module(gm: torch.nn.Module, name: str, module: torch.nn.Module) -> str:
    """Add a module under `name` with the next free number, and return its path."""

    def is_free(number: int) -> bool:
        return not hasattr(gm, f"{name}_{number}")

    end = 1  # a number that is free, found in a few steps also where many are taken
    while not is_free(end - 1):
        end *= 2
    path = f"{name}_{bisect.bisect_left(range(end), True, key=is_free)}"
    gm.add_module(path, module)
    return path


def new_module(gm: torch.nn.Module, name: str, module: torch.nn.Module) -> Callable[..., fx.Proxy]:
    """Add a module to the graph's owner under a fresh name; return a function that calls it on proxies."""
    path = add_module(gm, name, module)

    def call(*proxies: fx.Proxy) -> fx.Proxy:
        node = proxies[0].node.graph.call_module(path, tuple(proxy.node for proxy in proxies))
        return fx.Proxy(node, proxies[0].tracer)

    return call


def erase(nodes: tuple[fx.Node, ...]) -> None:
    """Erase nodes without users, the last one first; `finish` drops modules that only they called."""
    for node in sorted(nodes, reverse=True):
        node.graph.erase_node(node)


def finish(gm: fx.GraphModule) -> None:
    """Drop the modules that a changed graph no longer calls, check it, and generate its code."""
    check(gm)
    gm.recompile()


def check(gm: fx.GraphModule) -> None:
    """Drop the modules that a changed graph no longer calls, and check it; its code stays what it was."""
    named = {str(node.target) for op in ("call_module", "get_attr") for node in gm.graph.find_nodes(op=op)}
    _drop_unused_modules(gm, named)
    gm.graph.lint()


def describe_new_nodes(gm: fx.GraphModule) -> None:
    """Set the missing `val` of each node to the fake result of its call, if its operands have one.

    Nothing is computed. Nodes with `val` are skipped to save time. A node whose fake result cannot be found has none;
    guards then refuse matches that read it.
    """
    mode = next(
        (value.fake_mode for node in gm.graph.nodes if isinstance(value := node.meta.get("val"), FakeTensor)), None
    )
    if mode is None:
        return
    for node in gm.graph.nodes:
        if "val" not in node.meta and node.op in ("get_attr", "call_function", "call_method", "call_module"):
            _describe(node, mode)


def _describe(node: fx.Node, mode: FakeTensorMode) -> None:
    if node.op == "get_attr":
        describe_attribute(node)
    elif all("val" in operand.meta for operand in node.all_input_nodes):
        with mode, torch.no_grad():
            node.meta["val"] = run_node(node, {})


def _copied(graph: fx.Graph, node: fx.Node, values: Mapping[Operand, fx.Node]) -> fx.Node:
    return graph.node_copy(node, values.__getitem__)


def _operands(call: Call, inside: Mapping[fx.Node, Call]) -> Iterable[Operand]:
    """Yield the operands of a call from outside the match."""
    yield from (node for node in call.node.all_input_nodes if node not in inside)
    if _has_state(call):
        yield from (value for value in call.arguments.values() if isinstance(value, ModuleAttribute))


def _operator(graph: fx.Graph, call: Call, values: Mapping[Operand, fx.Node]) -> fx.Node:
    """Write the operator that a module calls, with its parameters as arguments."""
    given = {
        name: values[value] if isinstance(value, (fx.Node, ModuleAttribute)) else value
        for name, value in call.arguments.items()
    }
    return graph.call_function(call.operator.full, (), given)  # type: ignore[arg-type]  # what a module can hold


def _has_state(call: Call) -> bool:
    return call.module is not None and bool(call.module.state_dict())


def _as_proxy(graph: fx.Graph, tracer: fx.proxy.GraphAppendingTracer, value: object) -> object:
    if isinstance(value, ModuleAttribute):
        node = graph.create_node("get_attr", value.path)  # not get_attr(), which warns of paths with a number in them
        return fx.Proxy(node, tracer)
    return fx.Proxy(value, tracer) if isinstance(value, fx.Node) else value


def _drop_unused_modules(gm: fx.GraphModule, named: set[str]) -> None:
    """Drop modules that no node names, unless they hold something that belongs to the state dict."""
    holders = {prefix for path in named for prefix in itertools.accumulate(path.split("."), "{}.{}".format)}

    def visit(module: torch.nn.Module, path: str) -> None:
        for name, child in list(module.named_children()):
            inner = f"{path}{name}"
            if inner in holders and inner not in named:
                visit(child, f"{inner}.")
            elif inner not in named and not child.state_dict():
                module._modules.pop(name)

    visit(gm, "")
