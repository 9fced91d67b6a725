"""GELU becomes its tanh approximation, only when that is named and allowed."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import FusionError
from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import normal, same

Tensor = torch.Tensor
X = normal(3, 4)


class Gelus(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.act(x) + F.gelu(x, approximate="tanh")


class Tanhs(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate="tanh") + F.gelu(x, approximate="tanh")


def test_it_computes_what_it_says_and_runs_once() -> None:
    program = Gelus()
    result = fuse(program, (X,), ("gelu_tanh",), level="lossy")
    assert result.num_matches == 1
    same(Tanhs(), result, (X,))
    assert fuse(result.graph_module, (X,), ("gelu_tanh",), level="lossy").num_matches == 0
    assert count_operators(fuse(program, (X,), ()).graph_module)["torch.nn.GELU"] == 1


def test_it_needs_permission_and_never_runs_by_default() -> None:
    with pytest.raises(FusionError, match='level="lossy"'):
        fuse(Gelus(), (X,), ("gelu_tanh",))
    assert "gelu_tanh" not in fuse(Gelus(), (X,), level="lossy").num_matches_by_pass


def test_gelu_with_a_bias_still_fuses_afterwards() -> None:
    def program(x: Tensor, b: Tensor) -> Tensor:
        return F.gelu(x + b)

    approximate = fuse(program, (X, X[0]), ("gelu_tanh", "bias_gelu"), level="lossy")
    assert count_operators(approximate.graph_module) == {"torch.ops.course_lib.bias_gelu": 1}
