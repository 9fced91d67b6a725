"""Change a copy of a graph, and leave it clean."""

import copy
import itertools
from collections.abc import Callable, Mapping

import torch
from torch import fx

from course_lib.capture.unpickling import picklable
from course_lib.errors import FusionError
from course_lib.fusion.owned import Owned


def copy_of(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a graph module with a graph of its own, which shares parameters and modules with `gm`."""
    if not isinstance(gm, fx.GraphModule):
        raise FusionError(f"A pass got a {type(gm).__name__}; it expects a torch.fx.GraphModule, see capture().")
    copied = fx.GraphModule(gm, copy.deepcopy(gm.graph), class_name=type(gm).__name__)
    copied.meta = dict(gm.meta)
    keep_state(copied, gm)
    return picklable(copied)


def keep_state(gm: fx.GraphModule, program: torch.nn.Module) -> None:
    """Give `gm` what it lacks of the parameters and buffers of `program`, so that its checkpoints still load.

    torch.fx leaves out what the graph does not use, and a pass may leave something unused.
    """
    have = gm.state_dict(keep_vars=True)
    for path, tensor in program.state_dict(keep_vars=True).items():
        *parents, name = path.split(".")
        if path in have or not isinstance(tensor, torch.Tensor):
            continue
        module: torch.nn.Module = gm
        for parent in parents:
            if not hasattr(module, parent):
                module.add_module(parent, torch.nn.Module())
            module = getattr(module, parent)
        if isinstance(tensor, torch.nn.Parameter):
            module.register_parameter(name, tensor)
        else:
            module.register_buffer(name, tensor)


def put_in_place_of(anchor: fx.Node, replacement: Callable[..., object], operands: Mapping[str, object]) -> fx.Node:
    """Write the calls that `replacement` makes before `anchor`, and let its result take the place of `anchor`.

    `replacement` is plain PyTorch. It runs once, on proxies where an operand is a node or belongs to a module, and on
    the literal itself where it is one. The new nodes have the source line of `anchor`.
    """
    graph = anchor.graph
    tracer = fx.proxy.GraphAppendingTracer(graph)
    known = set(graph.nodes)
    with graph.inserting_before(anchor):
        result = replacement(**{name: _as_proxy(graph, tracer, value) for name, value in operands.items()})
    new = result.node if isinstance(result, fx.Proxy) else result
    assert isinstance(new, fx.Node), "a replacement returns what one of its calls gave"
    for node in [node for node in graph.nodes if node not in known]:
        if not node.users and node is not new:  # an operand that the replacement has no use for
            graph.erase_node(node)
        else:
            node.meta.update(
                {key: anchor.meta[key] for key in ("stack_trace", "nn_module_stack") if key in anchor.meta}
            )
    if new not in known:
        new.meta = dict(anchor.meta)  # shape and type of the result are those of the anchor's
    anchor.replace_all_uses_with(new)
    return new


def new_constant(gm: fx.GraphModule, node: fx.Node, module: torch.nn.Module) -> fx.Node:
    """Add a module without inputs, and return a call of it before `node`, whose result it gives."""
    path = _add_module(gm, "constant", module)
    with gm.graph.inserting_before(node):
        new = gm.graph.call_module(path)
    new.meta = dict(node.meta)
    return new


def _add_module(gm: torch.nn.Module, name: str, module: torch.nn.Module) -> str:
    number = next(number for number in itertools.count() if not hasattr(gm, f"{name}_{number}"))
    gm.add_module(f"{name}_{number}", module)
    return f"{name}_{number}"


def new_module(gm: torch.nn.Module, name: str, module: torch.nn.Module) -> Callable[..., fx.Proxy]:
    """Add a module to the graph's owner under a fresh name; return a function that calls it on proxies."""
    path = _add_module(gm, name, module)

    def call(*proxies: fx.Proxy) -> fx.Proxy:
        node = proxies[0].node.graph.call_module(path, tuple(proxy.node for proxy in proxies))
        return fx.Proxy(node, proxies[0].tracer)

    return call


def erase(nodes: tuple[fx.Node, ...]) -> None:
    """Take away nodes that nobody uses any more, the last one first, with the modules that only they called."""
    for node in sorted(nodes, reverse=True):
        graph = node.graph
        graph.erase_node(node)
        if node.op == "call_module":
            _forget_module(graph, str(node.target))


def finish(gm: fx.GraphModule) -> None:
    """Check a changed graph and generate its code."""
    gm.graph.lint()
    gm.recompile()


def _as_proxy(graph: fx.Graph, tracer: fx.proxy.GraphAppendingTracer, value: object) -> object:
    if isinstance(value, Owned):
        node = graph.create_node("get_attr", value.path)  # not get_attr(), which warns of paths with a number in them
        return fx.Proxy(node, tracer)
    return fx.Proxy(value, tracer) if isinstance(value, fx.Node) else value


def _forget_module(graph: fx.Graph, path: str) -> None:
    """Drop a module that no node names any more, unless it holds something that belongs to the state dict."""
    owner = graph.owning_module
    assert owner is not None, "a pass works on the graph of a GraphModule"
    named = {str(node.target) for node in graph.nodes if node.op in ("call_module", "get_attr")}
    in_use = any(name == path or name.startswith(f"{path}.") or path.startswith(f"{name}.") for name in named)
    if not in_use and not owner.get_submodule(path).state_dict():
        owner.delete_submodule(path)
