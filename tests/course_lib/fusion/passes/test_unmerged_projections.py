"""Projections that `qkv_merge` keeps apart: their memory is read by position, or no gradient reaches them."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from tests.course_lib.fusion.passes.rewrites import normal

Tensor = torch.Tensor


def test_a_reader_of_memory_by_position_keeps_the_projections_apart() -> None:
    def program(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return F.linear(x, w).as_strided((64, 8), (8, 1)) * 2 + torch.relu(F.linear(x, v))

    def through_a_view(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
        return torch.relu(F.linear(x, w)) + torch.as_strided(F.linear(x, v).view(8, 8, 8), (64, 8), (8, 1))

    inputs = (normal(64, 8), normal(8, 8), normal(8, 8) + 1)
    for one in (program, through_a_view):
        result = fuse(one, inputs, ("qkv_merge",))
        assert [refusal.rule for refusal in result.rejected] == ["strides"]
        torch.testing.assert_close(result.graph_module(*inputs), one(*inputs))


UNREACHED: dict[str, Callable[[Tensor], Tensor]] = {
    "detached": lambda y: y.detach(),
    "data": lambda y: y.data,
    "its largest": lambda y: y.argmax(-1, keepdim=True),
    "compared": lambda y: (y > 0) * 1.0,
}


@pytest.mark.parametrize("case", UNREACHED)
def test_a_weight_that_has_no_gradient_still_has_none(case: str) -> None:
    class Program(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(8, 8, bias=False) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.query(x) * self.key(x) + UNREACHED[case](self.value(x))

    program, x = Program(), normal(64, 8)
    gm = fuse(program, (x,), ("qkv_merge",)).graph_module
    gm(x).sum().backward()
    assert program.value.weight.grad is None
    assert program.query.weight.grad is not None
    assert len(gm.graph.find_nodes(op="call_function", target=F.linear)) == 1
