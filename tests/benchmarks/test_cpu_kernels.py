"""What the times of the fused operators on a CPU are made into: lines, and targets that are surely missed."""

import dataclasses

import pytest
import torch

from benchmarks import cpu_kernels
from course_lib.timing.clocks import Timing
from course_lib.timing.paired_runs import Comparison


def compared(ratio: float, pairs: int = 40) -> Comparison:
    """A comparison of which every pair has the ratio."""
    timings = [Timing((us,) * pairs, (), (), 1.0, 1, 0.0, "cpu", "wall", "warm") for us in (10.0, 10.0 * ratio)]
    return Comparison(timings[0], timings[1], (True,) * pairs, 1.0, 0)


def test_every_operator_has_a_line_for_each_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "compile", lambda program, dynamic: program)
    found = list(cpu_kernels.lines((4, 32), torch.float32, 0.001))
    assert len(found) == 14
    assert all("4 × 32 float32" in line.text and "µs" in line.text for line in found)
    assert [line.operator for line in found[:2]] == ["bias_gelu", "bias_gelu"]


@pytest.mark.parametrize(
    ("operator", "rows", "direction", "compiled", "eager", "missed"),
    [
        ("bias_silu", 4096, "forward", 1.0, 1.6, 0),
        ("bias_silu", 4096, "forward", 0.9, 1.6, 1),
        ("bias_silu", 4096, "forward", 0.9, 1.4, 2),
        ("bias_silu", 4096, "backward", 1.0, 1.4, 0),
        ("bias_silu", 4096, "backward", 0.9, 1.4, 1),
        ("residual_layer_norm", 4096, "forward", 1.0, 1.1, 0),
        ("bias_silu", 128, "forward", 0.5, 0.5, 0),
    ],
)
def test_a_target_is_missed_where_the_whole_interval_is_below_it(
    operator: str, rows: int, direction: str, compiled: float, eager: float, missed: int
) -> None:
    line = cpu_kernels.Line(operator, rows, direction, "it", compared(compiled), compared(eager))
    assert len(list(line.missed())) == missed
    few = dataclasses.replace(line, compiled=compared(compiled, 3), eager=compared(eager, 3))
    assert not list(few.missed())
