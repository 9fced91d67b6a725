"""A small program for each pass, which the pass changes."""

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.fx.experimental.proxy_tensor import make_fx

from course_lib.fusion import PASSES, FusionResult, LayerNormToBatchNorm, fuse
from course_lib.fusion.fusion_pass import GraphPass
from course_lib.fusion.passes.sdpa import Sdpa

X, BIAS = torch.linspace(-2.0, 2.0, 128).reshape(2, 8, 8), torch.linspace(0.0, 1.0, 8)
IMAGE = torch.linspace(-1.0, 1.0, 6144).reshape(8, 3, 16, 16)


class DropoutNorm(nn.Module):
    """A layer with dropout, residual and LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.drop = nn.Linear(8, 8), nn.LayerNorm(8), nn.Dropout(0.1)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + self.drop(self.linear(x)))


class ResidualNorm(nn.Module):
    """A residual and a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(8)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(x + x.sin())


class Projections(nn.Module):
    """Three projections of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8, bias=False) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.q(x)) * torch.relu(self.k(x)) + torch.sin(self.v(x))


def _attention(q: Tensor) -> Tensor:
    return torch.softmax(q @ q.mT / 8**0.5, -1) @ q


def _causal(q: Tensor) -> Tensor:
    mask = torch.ones(8, 8, device=q.device).tril() == 0
    return torch.softmax((q @ q.mT * 0.5).masked_fill(mask, float("-inf")), -1) @ q


def _dead(x: Tensor) -> Tensor:
    x.sin()
    return x + 1


def _twice(x: Tensor) -> Tensor:
    return x.exp() + x.exp()


def _order(x: Tensor) -> Tensor:
    first, second = x * 2, x.repeat(4, 1, 1)
    return second.sum() + first.sum()


def _folded(x: Tensor) -> Tensor:
    return x + torch.arange(8.0, device=x.device).sqrt()


def _written_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3)))


def _batch_norm(first: nn.Module, norm: nn.Module) -> nn.Module:
    return nn.Sequential(first, norm, nn.ReLU()).eval()


Case = tuple[Callable[..., Any], tuple[Tensor, ...]]
PROGRAMS: dict[str, Case] = {
    "add_scaled": (lambda x: x + x.sin() * x.cos(), (X,)),
    "bias_dropout_residual_layer_norm": (DropoutNorm().eval(), (X,)),
    "bias_gelu": (lambda x, b: F.gelu(x + b), (X, BIAS)),
    "common_subexpressions": (_twice, (X,)),
    "constant_folding": (make_fx(_folded)(X), (X,)),
    "conv_batch_norm": (_batch_norm(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), (IMAGE,)),
    "dead_code": (_dead, (X,)),
    "formulas": (_written_gelu, (X,)),
    "gelu_tanh": (lambda x: F.gelu(x), (X,)),
    "gelu_to_relu": (nn.Sequential(nn.Linear(8, 8), nn.GELU()), (X,)),
    "layer_norm_to_batch_norm": (nn.Sequential(nn.Linear(8, 8), nn.LayerNorm(8)).eval(), (X,)),
    "linear_batch_norm": (_batch_norm(nn.Linear(8, 4), nn.BatchNorm1d(4)), (X[0].repeat(25, 1),)),
    "matmul_scale": (lambda a, b: (a @ b) * 0.125, (torch.ones(64, 8), torch.ones(8, 64))),
    "memory_order": (_order, (X,)),
    "normalise": (lambda x: x.add(1).relu(), (X,)),
    "out_of_place": (lambda x: (x * 2).add_(1).sin(), (X,)),
    "qkv_merge": (Projections(), (torch.linspace(-1.0, 1.0, 2048).reshape(256, 8),)),
    "residual_layer_norm": (ResidualNorm(), (X,)),
    "sdpa": (_attention, (X,)),
    "sdpa with a mask": (_causal, (X,)),
}
WITH_A_PROMISE: dict[str, GraphPass] = {
    "layer_norm_to_batch_norm": LayerNormToBatchNorm(calibration=[(X,)]),
    "sdpa with a mask": Sdpa(every_row_sees_something=True),
}


@functools.cache
def fused_by(case: str) -> FusionResult:
    """Return what the pass of a case makes of its program."""
    run, inputs = PROGRAMS[case]
    name = case.partition(" ")[0]
    one = WITH_A_PROMISE.get(case, name)
    return fuse(run, inputs, [one], level=PASSES[name].level, check=False)
