"""The loose pass fits bias and GELU, and whatever its check accepts beside it."""

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from course_lib.errors import CaptureError
from course_lib.graph import propagate_shapes
from course_lib.inductor_passes import calls_of, decomposed, fuse_loosely, with_fake_values

INPUTS = [torch.randn(4, 8), torch.randn(8)]


def _gelu(x: Tensor, b: Tensor) -> Tensor:
    return F.gelu(x + b)


def test_it_fires_and_numbers_agree_and_a_second_run_changes_nothing() -> None:
    graph_module = decomposed(_gelu, INPUTS)
    assert fuse_loosely(graph_module, lambda match: True) == 1
    assert calls_of(graph_module.graph) == ["course_lib.bias_gelu.default"]
    torch.testing.assert_close(graph_module(*INPUTS), _gelu(*INPUTS))
    assert fuse_loosely(graph_module, lambda match: True) == 0


def test_a_look_alike_is_left_alone_only_by_the_check() -> None:
    def other(x: Tensor, b: Tensor) -> Tensor:
        return ((x + b) * 0.5) * (torch.erf((h := x + b) * 0.5) + 1) + h

    for accepted, count in ((False, 0), (True, 0)):  # two sums: not one node, so the pattern itself does not fit
        assert fuse_loosely(decomposed(other, INPUTS), lambda match, accepted=accepted: accepted) == count
    assert fuse_loosely(decomposed(_gelu, INPUTS), lambda match: False) == 0


def test_a_graph_of_torch_fx_gets_its_fake_values_from_the_forms_of_its_inputs() -> None:
    traced = torch.fx.symbolic_trace(_gelu)
    propagate_shapes(traced, [torch.empty(4, 8, dtype=torch.float64), torch.empty(8, dtype=torch.float64)])
    values = [node.meta["val"] for node in with_fake_values(traced).graph.nodes if node.op != "output"]
    assert {value.dtype for value in values} == {torch.float64}
    assert [tuple(value.shape) for value in values] == [(4, 8), (8,), (4, 8), (4, 8)]


def test_a_module_whose_parameters_would_be_lost_is_refused() -> None:
    with pytest.raises(CaptureError, match="decomposed got a Linear, whose parameters would be constants"):
        decomposed(torch.nn.Linear(8, 8), INPUTS[:1])
