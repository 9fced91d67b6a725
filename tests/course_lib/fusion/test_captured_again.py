"""What a pass makes is a program like any other: it is compiled whole, exported, and fused again as a part."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from course_lib.fusion import PASSES, fuse
from tests.course_lib.fusion.program_of_each_pass import PROGRAMS, fused_by


def test_the_programs_are_there_for_each_pass_which_fuses_them() -> None:
    assert {case.partition(" ")[0] for case in PROGRAMS} == set(PASSES)
    assert [case for case in PROGRAMS if not fused_by(case).num_matches] == []


def _compiled(gm: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    torch._dynamo.reset()
    return torch.compile(gm, backend="aot_eager", fullgraph=True)


def _exported(gm: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    return torch.export.export(gm, inputs, strict=True).module()


def _part_of_a_model(gm: nn.Module, inputs: tuple[Tensor, ...]) -> Any:
    """Fuse a model that has the result as a part; of a folded buffer, torch.fx makes a constant, and `lost` says so."""
    result = fuse(nn.Sequential(gm) if len(inputs) == 1 else _TwoInputs(gm), inputs)
    assert [said for said in result.lost if "running_var while the program is traced" not in said] == []
    return result.graph_module


class _TwoInputs(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, first: Tensor, second: Tensor) -> Any:
        return self.part(first, second)


@pytest.mark.parametrize("again", [_compiled, _exported, _part_of_a_model], ids=["compiled", "exported", "fused"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_the_result_of_a_pass_is_captured_again(case: str, again: Callable[..., Any]) -> None:
    inputs = PROGRAMS[case][1]
    gm = fused_by(case).graph_module
    with_gradients = tuple(one.clone().requires_grad_() for one in inputs)

    repeated = again(gm, inputs)

    for given in (inputs, with_gradients):
        torch.testing.assert_close(repeated(*given), gm(*given), rtol=1e-4, atol=1e-5)
