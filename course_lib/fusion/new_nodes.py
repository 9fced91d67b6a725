"""Shapes of the nodes that a pass has made: only theirs, because finding those of a whole graph takes a while."""

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from course_lib.fusion.owned import module_of


def describe_new_nodes(gm: fx.GraphModule) -> None:
    """Give each node that has no `val` yet the fake result of its call, where its operands have one.

    Nothing is computed. A node whose fake result cannot be found stays without; guards then refuse what reads it.
    """
    mode = next((value.fake_mode for node in gm.graph.nodes if isinstance(value := _known(node), FakeTensor)), None)
    if mode is None:
        return
    for node in gm.graph.nodes:
        if "val" not in node.meta and node.op in ("get_attr", "call_function", "call_module"):
            _describe(gm, node, mode)


def _known(node: fx.Node) -> object:
    return node.meta.get("val")


def _describe(gm: fx.GraphModule, node: fx.Node, mode: FakeTensorMode) -> None:
    if not all("val" in operand.meta for operand in node.all_input_nodes):
        return
    if node.op == "get_attr":
        node.meta["val"] = _stand_in(gm, str(node.target), mode)
        return
    args, kwargs = (fx.map_arg(part, _known) for part in (node.args, node.kwargs))  # type: ignore[arg-type]  # values
    function = module_of(node) if node.op == "call_module" else node.target
    with mode, torch.no_grad():
        node.meta["val"] = function(*args, **kwargs)  # type: ignore[operator,arg-type]  # a call's own arguments


def _stand_in(gm: fx.GraphModule, path: str, mode: FakeTensorMode) -> object:
    value: object = gm
    for part in path.split("."):
        value = getattr(value, part)
    if not isinstance(value, torch.Tensor):
        return value
    with mode:
        return torch.empty_strided(tuple(value.shape), value.stride(), dtype=value.dtype, device=value.device)
