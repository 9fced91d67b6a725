"""layer_norm(x + residual) becomes one operator; what only looks like it stays."""

import copy
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.fusion import fuse
from course_lib.graph import count_operators
from tests.course_lib.fusion.passes.rewrites import fused, left_alone, normal, same

NAME = "residual_layer_norm"
FUSED = "torch.ops.course_lib.residual_layer_norm"
Tensor = torch.Tensor


class AddThenNorm(nn.Module):
    def __init__(self, add: Callable[..., Tensor] = torch.add, norm: nn.Module | None = None) -> None:
        super().__init__()
        self.add = add
        self.norm = norm or nn.LayerNorm(6, eps=1e-3)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(self.add(x, residual))


INPUTS = (normal(4, 6), normal(4, 6) * 2)
SPELLINGS: dict[str, Callable[..., Tensor]] = {
    "operator": lambda x, r: x + r,
    "commuted": lambda x, r: r + x,
    "function": torch.add,
    "alpha_one": lambda x, r: torch.add(x, r, alpha=1),
    "method_by_name": lambda x, r: x.add(other=r),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_is_fused_and_computes_the_same(spelling: str) -> None:
    program = AddThenNorm(SPELLINGS[spelling])
    result = fused(program, INPUTS, NAME)
    assert count_operators(result.graph_module) == {FUSED: 1}
    assert result.cost_before.launches - result.cost_after.launches == 1  # type: ignore[union-attr]
    same(program, result, INPUTS)


@pytest.mark.parametrize("rows", [0, 1, 3, 127])
def test_odd_and_empty_sizes_compute_the_same(rows: int) -> None:
    inputs = (normal(rows, 6), normal(rows, 6))
    program = AddThenNorm()
    same(program, fused(program, inputs, NAME), inputs)


def test_functional_layer_norm_and_exported_programs_are_fused() -> None:
    norm = nn.LayerNorm(6)

    class Functional(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = norm.weight
            self.shift = norm.bias

        def forward(self, x: Tensor, residual: Tensor) -> Tensor:
            return F.layer_norm(input=x + residual, normalized_shape=[6], bias=self.shift, weight=self.scale)

    program = Functional()
    same(program, fused(program, INPUTS, NAME), INPUTS)
    exported = torch.export.export(program, INPUTS)
    result = fuse(exported, INPUTS, (NAME,))
    assert result.num_matches == 1
    same(program, result, INPUTS)


def _hooked() -> nn.Module:
    norm = nn.LayerNorm(6)
    norm.register_forward_hook(lambda *_: None)
    return norm


LOOKALIKES: dict[str, tuple[Callable[[], nn.Module], str]] = {
    "alpha": (lambda: AddThenNorm(lambda x, r: torch.add(x, r, alpha=2)), "alpha"),
    "no_affine": (lambda: AddThenNorm(norm=nn.LayerNorm(6, elementwise_affine=False)), "affine"),
    "no_bias": (lambda: AddThenNorm(norm=nn.LayerNorm(6, bias=False)), "affine"),
    "two_dimensions": (lambda: AddThenNorm(norm=nn.LayerNorm((4, 6))), "shape"),
    "hooks": (lambda: AddThenNorm(norm=_hooked()), "hooks"),
    "in_place": (lambda: AddThenNorm(lambda x, r: x.add_(r)), "in place"),
    "a_number": (lambda: AddThenNorm(lambda x, r: x + 1), "shape"),
    "broadcast": (lambda: AddThenNorm(lambda x, r: x + r[0]), "shape"),
}


@pytest.mark.parametrize("case", LOOKALIKES)
def test_a_look_alike_is_left_alone_and_the_reason_given(case: str) -> None:
    build, rule = LOOKALIKES[case]
    left_alone(build(), INPUTS, NAME, rule)


def test_a_sum_that_others_need_stays() -> None:
    class Returned(AddThenNorm):
        def forward(self, x: Tensor, residual: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            total = x + residual
            return self.norm(total), total

    left_alone(Returned(), INPUTS, NAME, "is an output")


def test_a_residual_that_changes_in_between_stops_the_fusion() -> None:
    class Changed(AddThenNorm):
        def forward(self, x: Tensor, residual: Tensor) -> Tensor:
            total = x + residual
            residual[0].mul_(2)
            return self.norm(total)

    left_alone(Changed(), INPUTS, NAME, "mutation")


def test_a_weight_that_changes_before_the_norm_reads_it_is_read_at_the_same_place() -> None:
    class Changed(AddThenNorm):
        def forward(self, x: Tensor, residual: Tensor) -> Tensor:
            total = x + residual
            self.norm.weight.mul_(2)
            return self.norm(total)

    program = Changed().requires_grad_(False)
    expected = copy.deepcopy(program)(*INPUTS)
    torch.testing.assert_close(fused(program, INPUTS, NAME).graph_module(*INPUTS), expected)


def test_a_weight_that_changes_afterwards_stops_the_fusion() -> None:
    class Changed(AddThenNorm):
        def forward(self, x: Tensor, residual: Tensor) -> Tensor:
            normed = self.norm(x + residual)
            self.norm.weight.mul_(2)
            return normed

    left_alone(Changed().requires_grad_(False), INPUTS, NAME, "mutation")
