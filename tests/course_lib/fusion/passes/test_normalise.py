"""Every spelling becomes one, and nothing else changes."""

import operator
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import normal, same

Tensor = torch.Tensor
INPUTS = (normal(3, 4), normal(3, 4) + 3)


class Modules(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleList([nn.GELU("tanh"), nn.ReLU(), nn.SiLU(), nn.Softmax(1), nn.Sigmoid(), nn.Tanh()])

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x


# Program, and what it calls afterwards.
CASES: dict[str, tuple[Callable[..., object], dict[str, int]]] = {
    "sums": (
        lambda x, y: torch.add(x, y) + x.add(y) + x.add(other=y) + torch.add(input=x, other=y, alpha=1),
        {"operator.add": 7},
    ),
    "alpha": (lambda x, y: x.add(y, alpha=2), {"torch.add": 1}),
    "numbers": (lambda x, y: 2 + x * 3 - torch.mul(y, 2), {"operator.add": 1, "operator.mul": 2, "operator.sub": 1}),
    "division": (
        lambda x, y: torch.div(x, y) + torch.true_divide(x, y) + x.div(y, rounding_mode="floor"),
        {"operator.add": 2, "operator.truediv": 2, "torch.div": 1},
    ),
    "products": (lambda x, y: x.matmul(y.transpose(0, 1)), {"operator.matmul": 1, "torch.transpose": 1}),
    "softmaxes": (lambda x, y: x.softmax(-1) + F.softmax(y, dim=-1), {"operator.add": 1, "torch.softmax": 2}),
    "activations": (
        lambda x, y: F.relu(torch.relu(x.relu())) + F.gelu(y, approximate="none"),
        {"operator.add": 1, "torch.nn.functional.gelu": 1, "torch.nn.functional.relu": 3},
    ),
    "layer norms": (
        lambda x, y: torch.layer_norm(x, (4,)) + F.layer_norm(y, normalized_shape=(4,)),
        {"operator.add": 1, "torch.nn.functional.layer_norm": 2},
    ),
    "dropouts": (lambda x, y: torch.dropout(x, 0.5, False) + y, {"operator.add": 1, "torch.nn.functional.dropout": 1}),
}


@pytest.mark.parametrize("case", CASES)
def test_each_spelling_becomes_one(case: str) -> None:
    program, calls = CASES[case]
    result = fuse(program, INPUTS, ("normalise",))
    assert count_operators(result.graph_module) == calls
    assert fuse(result.graph_module, INPUTS, ("normalise",)).num_matches == 0
    same(program, result, INPUTS)


def test_modules_without_parameters_become_functions() -> None:
    program = Modules()
    result = fuse(program, INPUTS, ("normalise",))
    assert not any(name.startswith("torch.nn.G") for name in count_operators(result.graph_module))
    assert result.num_matches == 6
    same(program, result, INPUTS)


class MayNotChange(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.dropout, self.linear, self.hooked = nn.Dropout(), nn.Linear(4, 4), nn.ReLU()
        self.hooked.register_forward_hook(lambda *_: None)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        size = operator.add(x.shape[0], 1)
        return self.hooked(self.linear(self.dropout(x))).add_(y) * size


def test_what_has_parameters_state_hooks_or_effects_stays() -> None:
    assert fuse(MayNotChange(), INPUTS, ("normalise",)).num_matches == 0


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
def test_a_softmax_module_without_a_dimension_stays() -> None:
    program = nn.Sequential(nn.Softmax(), nn.ReLU())
    same(program, fuse(program, INPUTS[:1], ("normalise",)), INPUTS[:1])


def test_the_default_passes_leave_spellings_alone() -> None:
    assert fuse(lambda x, y: torch.add(x, y), INPUTS).num_matches == 0


KEPT: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "alpha scales the second operand": lambda x, y: torch.add(1, x, alpha=2),
    "alpha by a method": lambda x, y: torch.add(input=2.5, other=x, alpha=-3) + y,
    "no dimension of softmax": lambda x, y: F.softmax(x) + F.softmax(y, dim=1),
    "no dimension of a sum": lambda x, y: x.sum(dim=None, keepdim=True) + y.mean(dim=None, keepdim=True),
    "no dimension of a variance": lambda x, y: x.var(dim=None, keepdim=True) + y.std(None, False, True),
    "another type": lambda x, y: x.sum(dtype=torch.float64) + y.sum(keepdim=True, dim=1, dtype=torch.float64),
    "a number filled in": lambda x, y: x.masked_fill(y > 0, -1) + torch.where(y > 0, x, 0.0),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Implicit dimension choice")
@pytest.mark.parametrize("case", KEPT)
def test_what_only_one_spelling_says_is_kept(case: str) -> None:
    program = KEPT[case]
    result = fuse(program, INPUTS, ("normalise",))
    same(program, result, INPUTS)
    assert fuse(result.graph_module, INPUTS, ("normalise",)).num_matches == 0
