"""Random states are set as `torch.manual_seed` sets them, and nothing is noted for devices that are not there."""

import copy

import pytest
import torch
from torch import nn

from course_lib.fusion import fuse
from course_lib.isolation import preserving, seed_everything


def test_what_is_drawn_is_what_manual_seed_gives() -> None:
    seed_everything(7)
    drawn = torch.rand(3)
    torch.manual_seed(7)
    assert torch.equal(drawn, torch.rand(3))


@pytest.mark.parametrize("there", [True, False])
def test_accelerators_are_seeded_where_there_are_any(there: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    monkeypatch.setattr(torch, "manual_seed", seeds.append)
    seed_everything(7)
    assert seeds == [7] * there


class WritesItsWeight(nn.Module):
    """Write a frozen weight in place, through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(4, 4).requires_grad_(False)
        self.norm = nn.LayerNorm(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = self.frozen.weight.t()
        product = x @ weight + self.frozen.bias
        weight.copy_(x)
        return self.norm(product)


def test_a_weight_that_was_written_with_values_that_have_a_gradient_is_a_leaf_again() -> None:
    program = WritesItsWeight()
    before = program.frozen.weight.clone()
    with preserving(program):
        program(torch.randn(4, 4, requires_grad=True))
        assert not program.frozen.weight.is_leaf

    assert program.frozen.weight.is_leaf
    assert not program.frozen.weight.requires_grad
    assert torch.equal(program.frozen.weight, before)


def test_a_program_that_writes_a_frozen_weight_can_be_fused() -> None:
    program, x = WritesItsWeight(), torch.randn(4, 4)
    before = program.frozen.weight.clone()
    expected = copy.deepcopy(program)(x)
    result = fuse(program, (x,))

    assert torch.equal(program.frozen.weight, before)
    torch.testing.assert_close(result.graph_module(x), expected)
    assert torch.equal(program.frozen.weight, x.t())  # the graph shares the weight, and writes it
