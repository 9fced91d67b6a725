"""Which node changes the memory of which, also through a view."""

import torch
from torch import fx

from course_lib.fusion.storage import mutations_of
from course_lib.graph import propagate_shapes


def _program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    start = x + y
    part = x[0]
    part.mul_(2)
    y.add_(x)
    return start


def test_changes_are_found_through_views_and_only_where_memory_is_shared() -> None:
    gm = propagate_shapes(fx.symbolic_trace(_program), [torch.randn(3), torch.randn(3)])
    nodes = {node.name: node for node in gm.graph.nodes}
    assert [node.name for node in mutations_of([nodes["x"]], after=nodes["add"])] == ["mul_"]
    assert [node.name for node in mutations_of([nodes["y"]], after=nodes["add"])] == ["add_"]
    assert mutations_of([nodes["add"]], after=nodes["add"]) == []


def test_without_shapes_any_change_is_suspected() -> None:
    nodes = {node.name: node for node in fx.symbolic_trace(_program).graph.nodes}
    assert [node.name for node in mutations_of([nodes["x"]], after=nodes["add"])] == ["mul_", "add_"]
