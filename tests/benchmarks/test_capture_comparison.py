"""The benchmark of capture modes sets programs against modes, with a mark for each verdict."""

import torch
from torch import nn

from benchmarks.capture_comparison import overview
from course_lib.capture import compare_modes


def test_an_overview_sets_programs_against_modes():
    def branches(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.sum() > 0 else x

    inputs = (torch.ones(2),), [(-torch.ones(2),)]
    both = [compare_modes(program, *inputs, modes=("trace", "fx", "dynamo")) for program in (branches, nn.ReLU())]
    assert overview(both).splitlines() == [
        "program   trace  fx  dynamo",
        "--------  -----  --  ------",
        "branches  ✗      –   ✓",
        "ReLU      ✓      ✓   ✓",
        "",
        "✓ captured  – refused  (–) refuses a probe  ✗ silently wrong  ○ ran as Python",
    ]
