"""The executor's own graph is shown: what was fused, and which types it was fused for."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from course_lib.capture import capture
from course_lib.capture.fusion_groups import optimized_graph
from course_lib.capture.script_graphs import _switches, fusing_with
from course_lib.errors import CaptureError

SWITCHES = [
    "_jit_can_fuse_on_cpu",
    "_jit_override_can_fuse_on_cpu",
    "_jit_texpr_fuser_enabled",
    "_jit_set_texpr_fuser_enabled",
    "_jit_get_te_must_use_llvm_cpu",
    "_jit_set_te_must_use_llvm_cpu",
    "_jit_llga_enabled",
    "_jit_set_llga_enabled",
]


class BiasTanh(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x + self.bias) * 2


class FeedForward(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.relu(self.up(x)))


def flags() -> list[bool]:
    return [read() for read, _ in _switches()]


@pytest.mark.parametrize("name", SWITCHES)
def test_a_private_switch_is_where_it_was(name):
    assert hasattr(torch._C, name), f"torch {torch.__version__}: course_lib/capture/script_graphs.py needs another way"


@pytest.mark.parametrize("mode", ["trace", "script"])
@pytest.mark.parametrize("gradients", [True, False])
def test_pointwise_operators_land_in_one_group(mode, gradients):
    before = flags()
    x = torch.randn(4, 8)
    captured = capture(BiasTanh(), (x,), mode=mode)
    with torch.set_grad_enabled(gradients):
        graph = optimized_graph(captured, (x,))
    (group,) = graph.groups
    assert group.kind == "prim::TensorExprGroup"
    assert group.operators[:3] == ("aten::add", "aten::tanh", "aten::mul")
    assert "aten::tanh" in group.ir
    assert "TensorExprGroup" in graph.ir
    assert "Float[4, 8]" in graph.profiled_types.values()
    assert flags() == before


def test_onednn_fuses_a_frozen_feed_forward():
    before = flags()
    x = torch.randn(4, 16)
    graph = optimized_graph(capture(FeedForward().eval(), (x,), mode="trace"), (x,), fuser="onednn")
    assert [group.operators for group in graph.groups] == [("aten::linear", "aten::relu"), ("aten::linear",)]
    assert {group.kind for group in graph.groups} == {"prim::oneDNNFusionGroup"}
    assert flags() == before


def test_the_captured_program_itself_is_not_fused():
    x = torch.randn(4, 8)
    captured = capture(BiasTanh(), (x,), mode="script")
    optimized_graph(captured, (x,))
    for _ in range(3):
        captured(x)
    assert "TensorExprGroup" not in str(torch.jit.last_executed_optimized_graph())


def test_the_switches_are_put_back_after_a_failure():
    before = flags()
    captured = capture(BiasTanh(), (torch.randn(4, 8),), mode="script")
    with pytest.raises(CaptureError, match="fails on these inputs"):
        optimized_graph(captured, (torch.randn(4, 7),))
    assert flags() == before
    with pytest.raises(KeyError), fusing_with("tensor_expressions"):
        raise KeyError(flags()[0])
    assert flags() == before


def test_wrong_calls_are_refused_in_words():
    x = torch.randn(4, 8)
    with pytest.raises(CaptureError, match='expects mode="trace" or mode="script"'):
        optimized_graph(capture(torch.relu, (x,), mode="make_fx"), (x,))
    with pytest.raises(CaptureError, match="runs=0"):
        optimized_graph(capture(BiasTanh(), mode="script"), (x,), runs=0)


def test_a_fuser_that_torchscript_does_not_have_is_refused_by_name():
    x = torch.randn(4, 8)
    with pytest.raises(
        CaptureError, match="no fuser 'nvfuser'; TorchScript has 'none', 'tensor_expressions', 'onednn'"
    ):
        optimized_graph(capture(BiasTanh(), (x,), mode="trace"), (x,), fuser="nvfuser")


@pytest.mark.parametrize("mode", ["trace", "script"])
def test_without_a_fuser_the_graph_is_still_the_optimised_one(mode):
    x = torch.randn(4, 8)
    graph = optimized_graph(capture(BiasTanh(), (x,), mode=mode), (x,), fuser="none")
    assert graph.groups == ()
    assert "aten::tanh" in graph.ir
    assert "prim::profile" not in graph.ir, "the executor is still profiling"
