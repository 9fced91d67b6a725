"""`fuse` as a backend of `torch.compile` computes what eager PyTorch does, with and without gradients."""

import copy
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, fx, nn

from course_lib.fusion import fuse

X = torch.linspace(-1.0, 1.0, 32).reshape(4, 8)


class RunningMean(nn.Module):
    """A mean that is written with `out=`."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(x)
        with torch.no_grad():
            torch.add(self.mean * 0.9, h.mean(0), alpha=0.1, out=self.mean)
        return self.norm(x + h) - self.mean


class WeightDecay(nn.Module):
    """A parameter that is written with `out=`."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(-1.0, 1.0, 64).reshape(8, 8))

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            torch.mul(self.weight, 0.99, out=self.weight)
        return F.gelu(x @ self.weight + 1)


class SpectralNorm(nn.Module):
    """A parametrization of PyTorch that writes with `out=` while it trains."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8))
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.linear(x))


def _fused(gm: fx.GraphModule, inputs: Sequence[Tensor]) -> Callable[..., Any]:
    return fuse(gm, inputs).graph_module.forward


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("program", [RunningMean, WeightDecay, SpectralNorm], ids=lambda one: one.__name__)
def test_a_program_that_writes_with_out_runs_as_in_eager_mode(program: type[nn.Module], graded: bool) -> None:
    torch._dynamo.reset()
    model = program()
    eager = copy.deepcopy(model)
    compiled = torch.compile(model, backend=_fused)
    with torch.set_grad_enabled(graded):
        for _ in range(2):
            torch.testing.assert_close(compiled(X), eager(X))
    for name, tensor in eager.state_dict().items():
        torch.testing.assert_close(model.state_dict()[name], tensor, msg=name)
