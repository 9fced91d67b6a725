"""Programs in which a BatchNorm that evaluates stands beside a layer, for the tests of the passes that fold it."""

import torch
from torch import nn

from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, normal, same

Tensor = torch.Tensor
IMAGE, ROWS = (normal(2, 3, 16, 16),), (normal(33, 5),)


class Convolved(nn.Module):
    """A convolution, a linear layer, and a BatchNorm with statistics after each."""

    def __init__(self, bias: bool = True) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1, stride=2, bias=bias), nn.BatchNorm2d(4)
        self.linear, self.linear_norm = nn.Linear(5, 4, bias=bias), nn.BatchNorm1d(4)
        self.next = nn.Linear(4, 3, bias=bias)
        for norm in (self.norm, self.linear_norm):
            norm.running_mean, norm.running_var = torch.randn(4), torch.rand(4) + 0.5
            norm.weight, norm.bias = nn.Parameter(torch.randn(4)), nn.Parameter(torch.randn(4))
        self.eval()

    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x)) if x.ndim == 4 else self.linear_norm(self.linear(x))


class Image(Convolved):
    def forward(self, x: Tensor) -> object:
        return self.norm(self.conv(x))


class Row(Convolved):
    def forward(self, x: Tensor) -> object:
        return self.linear_norm(self.linear(x))


class Before(Convolved):
    """BatchNorm first."""

    def forward(self, x: Tensor) -> object:
        return self.next(self.linear_norm(x))


class Between(Convolved):
    """Two layers, and BatchNorm between them: it goes into the first."""

    def forward(self, x: Tensor) -> object:
        return self.next(self.linear_norm(self.linear(x)))


def folds(program: nn.Module, inputs: tuple[Tensor, ...], name: str) -> None:
    """See that the pass folds the BatchNorm, that this moves fewer bytes, and that checkpoints and gradients agree."""
    result = fused(program, inputs, name)
    assert result.cost_before is not None
    assert result.cost_after is not None
    assert result.cost_after.bytes_moved < result.cost_before.bytes_moved
    assert not any("BatchNorm" in called for called in count_operators(result.graph_module))
    same(program, result, inputs, modes=("eval",))
