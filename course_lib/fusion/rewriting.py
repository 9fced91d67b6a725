"""Change a copy of a graph, and leave it clean."""

import bisect
import copy
import itertools
from collections.abc import Callable, Mapping

import torch
from torch import fx

from course_lib.capture.captured import picklable
from course_lib.errors import FusionError
from course_lib.fusion.constants import Constant
from course_lib.fusion.effects import between
from course_lib.fusion.mutation import mutations_of
from course_lib.fusion.owned import Owned
from course_lib.fusion.values import SYMBOLIC


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


def made_anew(gm: fx.GraphModule, program: object) -> frozenset[str]:
    """Return the paths of tensors that torch.fx registered as buffers, and `program` does not have."""
    known = dict(program.named_buffers()) if isinstance(program, torch.nn.Module) else {}
    return frozenset(path for path, _ in gm.named_buffers() if path not in known)


def keep_out_of_state(gm: fx.GraphModule, paths: frozenset[str]) -> None:
    """Turn buffers at these paths into constants.

    Those are what the program makes anew in each run, such as `torch.tensor(2.0)`: no checkpoint of it holds them. A
    buffer that a pass has added is none of them.
    """
    new = {path: tensor for path, tensor in gm.named_buffers() if path in paths}
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


def put_in_place_of(anchor: fx.Node, replacement: Callable[..., object], operands: Mapping[str, object]) -> fx.Node:
    """Write the calls that `replacement` makes before `anchor`, and let its result take the place of `anchor`.

    `replacement` is plain PyTorch. It runs once, on proxies where an operand is a node or belongs to a module, and on
    the literal itself where it is one. The new nodes have the source line of `anchor`.
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
        if not node.users and node is not new:  # an operand that the replacement has no use for
            graph.erase_node(node)
        else:
            node.meta.update(
                {key: anchor.meta[key] for key in ("stack_trace", "nn_module_stack", SYMBOLIC) if key in anchor.meta}
            )
    if new in added:
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
    path = _add_module(gm, name, module)

    def call(*proxies: fx.Proxy) -> fx.Proxy:
        node = proxies[0].node.graph.call_module(path, tuple(proxy.node for proxy in proxies))
        return fx.Proxy(node, proxies[0].tracer)

    return call


def erase(nodes: tuple[fx.Node, ...]) -> None:
    """Take away nodes that nobody uses any more, the last one first; `finish` drops modules that only they called."""
    for node in sorted(nodes, reverse=True):
        node.graph.erase_node(node)


def finish(gm: fx.GraphModule) -> None:
    """Drop the modules that a changed graph calls no more, check it, and generate its code."""
    check(gm)
    gm.recompile()


def check(gm: fx.GraphModule) -> None:
    """Drop the modules that a changed graph calls no more, and check it; its code stays what it was."""
    named = {str(node.target) for op in ("call_module", "get_attr") for node in gm.graph.find_nodes(op=op)}
    _drop_unused_modules(gm, named)
    gm.graph.lint()


def _as_proxy(graph: fx.Graph, tracer: fx.proxy.GraphAppendingTracer, value: object) -> object:
    if isinstance(value, Owned):
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
