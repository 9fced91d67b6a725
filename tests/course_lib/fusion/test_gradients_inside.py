"""A program that runs a backward pass itself is fused around it, and what that pass depends on stays as it is."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_lib.errors import GraphError
from course_lib.fusion import fuse

X, ROW = torch.linspace(-2, 2, 24).view(3, 8), torch.linspace(0, 1, 8)


def _force(x: Tensor, b: Tensor) -> Tensor:
    (gradient,) = torch.autograd.grad(F.gelu(x + b).sum(), x, create_graph=True)
    return F.gelu(gradient + b)


def _own_leaf(x: Tensor, b: Tensor) -> Tensor:
    y = x.detach().requires_grad_()
    F.gelu(y + b).sum().backward()
    assert y.grad is not None
    return y.grad + F.gelu(x + b)


def _one_of_two_equal_values(x: Tensor, b: Tensor) -> Tensor:
    p, q = x + b, x + b
    (gradient,) = torch.autograd.grad(F.gelu(p).sum() + torch.sin(q).sum(), p, create_graph=True)
    return gradient + F.gelu(x + b)


def _kept_gradient_of_one_of_two(x: Tensor, b: Tensor) -> Tensor:
    p, q = x * 2, x * 2
    p.retain_grad()
    (F.gelu(p + b).sum() + torch.sin(q).sum()).backward()
    assert p.grad is not None
    return p.grad + F.gelu(x + b)


class OfAWeight(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: Tensor, b: Tensor) -> Tensor:
        energy = F.gelu(self.linear(x) + b).sum()
        (gradient,) = torch.autograd.grad(energy, self.linear.weight, create_graph=True)
        return F.gelu(x + b) @ gradient


PROGRAMS: dict[str, tuple[Callable[..., Tensor], int]] = {
    "of an input": (_force, 1),
    "of a leaf made inside": (_own_leaf, 2),
    "of one of two equal values": (_one_of_two_equal_values, 1),
    "kept for one of two equal values": (_kept_gradient_of_one_of_two, 2),
    "of a weight": (OfAWeight(), 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_fused_and_computes_the_same(name: str) -> None:
    program, fused = PROGRAMS[name]
    x = X.clone().requires_grad_(name != "of a leaf made inside")
    result = fuse(program, (x, ROW))
    assert result.lost == ()
    assert result.num_matches_by_pass["bias_gelu"] == fused, result.explain()
    torch.testing.assert_close(result.graph_module(x, ROW), program(x, ROW))


def test_a_program_that_cannot_run_at_all_is_refused_with_its_first_error() -> None:
    with pytest.raises(GraphError, match="broadcast a dimension of length 3"):
        fuse(lambda x, b: x + b, (X, torch.zeros(3)))
