"""Modules whose parameters or buffers lie in the same memory: folds and merges see all of it, and take nothing away."""

import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.fusion.passes.linear_batch_norm import LinearBatchNorm
from tests.course_lib.fusion.passes.rewrites import fused, normal, same

Tensor = torch.Tensor
X, ONCE = normal(40, 4), (LinearBatchNorm(once=True),)


class Folded(nn.Module):
    """A layer and its BatchNorm, whose parameters the program also reads in another way."""

    def __init__(self, read: Callable[["Folded", Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.norm, self.other = nn.Linear(4, 4), nn.BatchNorm1d(4), nn.BatchNorm1d(4)
        self.read = read
        self.eval()

    def forward(self, x: Tensor) -> Tensor:
        return self.read(self, x)


READERS: dict[str, Callable[[Folded, Tensor], Tensor]] = {
    "its weight by a function, in a second fold": lambda m, x: (
        m.norm(m.linear(x)) + m.other(F.linear(x, m.linear.weight, m.linear.bias))
    ),
    "its weight in a sum": lambda m, x: m.norm(m.linear(x)) * m.linear.weight.sum(),
    "the module, after its weight was folded": lambda m, x: (
        m.norm(F.linear(x, m.linear.weight, m.linear.bias)) + m.linear(x * 2)
    ),
}


@pytest.mark.parametrize("case", READERS)
def test_folded_once_nothing_is_taken_from_the_callers_modules(case: str) -> None:
    program = Folded(READERS[case])
    expected, names = program(X), list(program.state_dict())
    result = fuse(program, (X,), ONCE)
    assert result.num_matches
    assert list(program.state_dict()) == names
    torch.testing.assert_close(program(X), expected)
    torch.testing.assert_close(result.graph_module(X), expected)


class Tracked(nn.Module):
    """A BatchNorm that evaluates, and one that trains and keeps its statistics in the same memory."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.other = nn.Linear(4, 4), nn.BatchNorm1d(4).eval(), nn.BatchNorm1d(4)
        assert self.norm.running_mean is not None
        self.other.running_mean = self.norm.running_mean.view(2, 2).view(4)

    def forward(self, x: Tensor) -> Tensor:
        trained = self.other(x + 3)
        return self.norm(self.linear(x)) + trained


def test_statistics_that_another_module_changes_are_not_folded_once() -> None:
    expected, program = Tracked(), Tracked()
    expected.load_state_dict(program.state_dict())
    result = fuse(program, (X,), ONCE, check=False)
    assert [one.rule for one in result.rejected] == ["mutation"]
    for _ in range(3):
        torch.testing.assert_close(result.graph_module(X), expected(X))


class Views(nn.Module):
    """A number that is an element of a buffer, in a list that torch.fx does not know."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("numbers", torch.ones(4))
        self.views = [self.get_buffer("numbers")[2]]

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (self.views[0] + torch.erf(x / math.sqrt(2)))


def test_a_view_of_a_buffer_is_no_constant_however_often_a_graph_is_fused() -> None:
    program = Views()
    once = fuse(program, (X,))
    twice = fuse(once.graph_module, (X,))
    assert once.graph_module.state_dict().keys() == twice.graph_module.state_dict().keys() == {"numbers"}
    for number in (1.0, 3.0):
        once.graph_module.load_state_dict({"numbers": torch.full((4,), number)})
        for result in (once, twice):
            torch.testing.assert_close(result.graph_module(X), program(X))


class Flat(nn.Module):
    """Projections whose weights are parts of one tensor."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.register_buffer("flat", torch.randn(48))
        self.q, self.k, self.v = (nn.Linear(4, 4, bias=False) for _ in range(3))
        for number, one in enumerate((self.q, self.k, self.v)):
            one.weight = nn.Parameter(self.get_buffer("flat")[16 * number : 16 * (number + 1)].view(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return self.q(x) * torch.tanh(self.k(x)) + torch.sin(self.v(x))


def test_projections_in_one_memory_are_merged_and_each_gets_its_gradient() -> None:
    program = Flat()
    result = fused(program, (X,), "qkv_merge")
    same(program, result, (X,))
    result.graph_module(X).sum().backward()
    merged = [one.weight.grad for one in (program.q, program.k, program.v)]
    program.zero_grad()
    program(X).sum().backward()
    torch.testing.assert_close(merged, [one.weight.grad for one in (program.q, program.k, program.v)])


def _scaled_between(x: Tensor, query: Tensor, key: Tensor) -> Tensor:
    projected = F.linear(x, query)
    query.view(-1)[:4].mul_(2)
    return torch.relu(projected) * F.linear(x, key)


@pytest.mark.parametrize("offset", [2, 20], ids=["overlapping", "apart"])
def test_a_write_into_the_memory_of_the_weights_keeps_projections_apart(offset: int) -> None:
    def inputs() -> tuple[Tensor, Tensor, Tensor]:
        flat = normal(40)
        return X, flat[:16].view(4, 4), flat[offset : offset + 16].view(4, 4)

    result = fuse(_scaled_between, inputs(), ("qkv_merge",))
    assert (result.num_matches, [one.rule for one in result.rejected]) == (0, ["mutation"])
    torch.testing.assert_close(result.graph_module(*inputs()), _scaled_between(*inputs()))
