"""An output that is wider than an input is held to the roundings of that input, since a fused operator has others."""

import pytest
import torch

from autograder.host.draw import Draw
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds import graph_values
from autograder.host.kinds.callable import Reply
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.traced import Program, TensorSpec, traced

NARROW, WIDE = TensorSpec((4, 8)), TensorSpec((4, 8), torch.float64)


class Rounded(GraphAnswer):
    """An answer whose first factor is off by so many units of rounding of float32."""

    def run(self, artifact, inputs, **how):
        x, y = inputs
        off = torch.tanh(x.double()) * (1 + self.counted["units"] * torch.finfo(torch.float32).eps)
        return Reply((off * y,), is_tuple=False, gradients=(), mutated=(), aliases=())


@pytest.mark.parametrize(("units", "right"), [(1.5, True), (400.0, False)])
def test_a_factor_at_float32_may_be_rounded_as_float32(monkeypatch, units, right):
    draw = Draw(1, "mixed")
    program = traced(Program("mixed", lambda: lambda x, y: torch.tanh(x) * y, (NARROW, WIDE), 0), draw)
    inputs = (draw.normal(4, 8), draw.normal(4, 8, dtype=torch.float64))
    answer = Rounded(None, None, {"units": units})
    monkeypatch.setattr(graph_values, "_unread", lambda *_: "")

    if right:
        graph_values.require_equal(answer, program, None, inputs, draw, False)
    else:
        with pytest.raises(CheckFailedError, match="rounding makes at most"):
            graph_values.require_equal(answer, program, None, inputs, draw, False)
