"""Shapes of the nodes that a pass has made: only theirs, because finding those of a whole graph takes a while."""

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from course_lib.fusion.layouts import run
from course_lib.graph.shapes import fake_like


def describe_new_nodes(gm: fx.GraphModule) -> None:
    """Give each node that has no `val` yet the fake result of its call, where its operands have one.

    Nothing is computed. A node whose fake result cannot be found stays without; guards then refuse what reads it.
    """
    mode = next((value.fake_mode for node in gm.graph.nodes if isinstance(value := _known(node), FakeTensor)), None)
    if mode is None:
        return
    # What a module holds has one stand-in, however many nodes name it.
    named = [node for node in gm.graph.find_nodes(op="get_attr") if "val" in node.meta]
    stand_ins = {id(_held(gm, str(node.target))): node.meta["val"] for node in named}
    for node in gm.graph.nodes:
        if "val" not in node.meta and node.op in ("get_attr", "call_function", "call_module"):
            _describe(gm, node, mode, stand_ins)


def _known(node: fx.Node) -> object:
    return node.meta.get("val")


def _describe(gm: fx.GraphModule, node: fx.Node, mode: FakeTensorMode, stand_ins: dict[int, object]) -> None:
    if not all("val" in operand.meta for operand in node.all_input_nodes):
        return
    if node.op == "get_attr":
        held = _held(gm, str(node.target))
        stand_in = fake_like(held.detach(), mode) if isinstance(held, torch.Tensor) else held
        node.meta["val"] = stand_ins.setdefault(id(held), stand_in)
        return
    with mode, torch.no_grad():
        node.meta["val"] = run(node, {})


def _held(gm: fx.GraphModule, path: str) -> object:
    value: object = gm
    for part in path.split("."):
        value = getattr(value, part)
    return value
