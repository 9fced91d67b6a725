"""GELU becomes ReLU, only when that is named and allowed."""

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


class Relus(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x) + F.relu(x)


def test_it_computes_what_it_says_and_runs_once() -> None:
    program = Gelus()
    result = fuse(program, (X,), ("gelu_to_relu",), level="lossy")
    assert result.num_matches == 2
    same(Relus(), result, (X,))
    assert fuse(result.graph_module, (X,), ("gelu_to_relu",), level="lossy").num_matches == 0
    assert count_operators(fuse(program, (X,), ()).graph_module)["torch.nn.GELU"] == 1


def test_it_needs_permission_and_never_runs_by_default() -> None:
    with pytest.raises(FusionError, match='level="lossy"'):
        fuse(Gelus(), (X,), ("gelu_to_relu",))
    assert "gelu_to_relu" not in fuse(Gelus(), (X,), level="lossy").num_matches_by_pass
