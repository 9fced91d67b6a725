"""The drawing of a program's life shows graph, parts, instructions and counts, and the rest that PyTorch runs."""

import re

import torch
from torch import fx

from course_lib.backends import Prices, lower
from course_lib.backends.life import draw_life
from course_lib.backends.toy import ToyTarget


def interrupted(x):
    return torch.tanh(torch.cumsum(torch.relu(x) + 1, 0)) * x


def drawn(**options):
    gm = fx.symbolic_trace(interrupted)
    lowered = lower(gm, (torch.ones(64, 64),), ToyTarget(), **options)
    return draw_life(gm, lowered), lowered


def test_each_part_has_its_instructions_and_counts():
    drawing, lowered = drawn()

    assert len(lowered.parts) == 2
    for part in lowered.parts:
        counts = part.compiled.program.counts
        assert f"{part.name} counts: launches {counts.launches}, " in drawing.text
        assert f"registers {counts.registers}, spills {counts.spills}" in drawing.text
    assert "eager: eager PyTorch · cumsum" in drawing.text
    assert "kernel over [64, 64]" in drawing.text
    left = re.findall(r'text-anchor="start"[^>]*>([^<]*)<', drawing.svg)
    assert "kernel over [64, 64]" in left
    assert not any("launches" in line for line in left)
    assert drawing.alt in drawing.svg


def test_a_part_that_does_not_pay_is_shown_with_its_reason():
    drawing, lowered = drawn(prices=Prices(handover_us=1e6))

    assert not any(part.kept for part in lowered.parts)
    assert drawing.text.count("left to eager PyTorch") == 2
