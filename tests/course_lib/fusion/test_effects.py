"""Nodes that change a tensor in place are recognised in every spelling, and others are not."""

import operator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.fusion.effects import mutates


class Foreign(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x


def _node(op: str, target: Any, *args: Any, **kwargs: Any) -> fx.Node:
    graph = fx.Graph()
    root = nn.Module()
    root.relu, root.relu_inplace, root.foreign = nn.ReLU(), nn.ReLU(inplace=True), Foreign()
    x = graph.placeholder("x")
    node = graph.create_node(op, target, (x, *args), {k: x if v == "x" else v for k, v in kwargs.items()})
    graph.output(node)
    return next(iter(fx.GraphModule(root, graph).graph.find_nodes(op=op, target=target)))


def _shown(call: tuple[Any, ...]) -> str:
    op, target, *rest = call
    return f"{op}-{getattr(target, '__name__', target)}-{rest}"


CHANGING: list[tuple[Any, ...]] = [
    ("call_method", "add_", 1),
    ("call_method", "zero_"),
    ("call_function", operator.iadd, 1),
    ("call_function", operator.setitem, 0, 1),
    ("call_function", torch.relu_),
    ("call_function", F.silu, True),
    ("call_function", F.dropout, 0.5, True, True),
    ("call_function", torch.ops.aten.add_.Tensor, 1),
    ("call_module", "relu_inplace"),
    ("call_module", "foreign"),
]
HARMLESS: list[tuple[Any, ...]] = [
    ("call_method", "add", 1),
    ("call_method", "__len__"),
    ("call_function", operator.add, 1),
    ("call_function", operator.index),
    ("call_function", operator.invert),
    ("call_function", F.silu),
    ("call_function", F.silu, False),
    ("call_function", F.gelu),
    ("call_function", torch.ops.aten.add.Tensor, 1),
    ("call_function", torch.ops.course_lib.bias_gelu, 1),
    ("call_module", "relu"),
]


@pytest.mark.parametrize("call", CHANGING, ids=_shown)
def test_what_changes_a_tensor_is_recognised(call: tuple[Any, ...]) -> None:
    assert mutates(_node(*call))


@pytest.mark.parametrize("call", HARMLESS, ids=_shown)
def test_what_changes_nothing_is_not_suspected(call: tuple[Any, ...]) -> None:
    assert not mutates(_node(*call))


def test_keywords_count_too() -> None:
    assert mutates(_node("call_function", F.relu, inplace=True))
    assert mutates(_node("call_function", torch.exp, out="x"))
    assert not mutates(_node("call_function", F.relu, inplace=False))
