"""TorchScript programs are frozen, saved, and read back as they were."""

import pytest
import torch
from torch import nn

from course_lib.capture import capture
from course_lib.capture.saved_programs import copy_of, freeze, load, save
from course_lib.errors import CaptureError


def convolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval()


X = torch.randn(2, 2, 6, 6)


@pytest.mark.parametrize("mode", ["trace", "script"])
def test_a_frozen_module_has_its_weights_in_the_graph(mode):
    model = convolution()
    captured = capture(model, (X,), mode=mode)
    frozen = freeze(captured)
    torch.testing.assert_close(frozen(X), model(X))
    assert "prim::GetAttr" in str(captured.graph)
    assert "prim::GetAttr" not in str(frozen.graph)
    assert frozen.captured_by == "torch.jit.freeze"
    assert any("deprecated" in said for said in frozen.warnings)
    assert "prim::GetAttr" in str(captured.graph)


def test_for_inference_the_batch_norm_is_folded():
    model = convolution()
    frozen = freeze(capture(model, (X,), mode="trace"), for_inference=True)
    assert "batch_norm" in capture(model, (X,), mode="trace").ir
    assert "batch_norm" not in frozen.ir
    torch.testing.assert_close(frozen(X), model(X), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["trace", "script"])
def test_a_saved_program_comes_back(mode, tmp_path, recwarn):
    model = convolution()
    path = save(capture(model, (X,), mode=mode), tmp_path / "program.pt")
    loaded = load(path)
    assert torch.equal(loaded(X), model(X))
    assert loaded.captured_by == "torch.jit.load"
    assert "batch_norm" in loaded.ir
    assert not recwarn.list


def test_a_saved_function_comes_back(tmp_path):
    captured = capture(lambda x: torch.relu(x) * 2, (X,), mode="trace")
    assert torch.equal(load(save(captured, tmp_path / "function.pt"))(X), torch.relu(X) * 2)
    assert torch.equal(copy_of(captured)(X), torch.relu(X) * 2)


def test_wrong_calls_are_refused_in_words(tmp_path):
    with pytest.raises(CaptureError, match="no such file"):
        load(tmp_path / "missing.pt")
    (tmp_path / "text.pt").write_text("not an archive")
    with pytest.raises(CaptureError, match="no TorchScript archive"):
        load(tmp_path / "text.pt")
    with pytest.raises(CaptureError, match="training mode"):
        freeze(capture(convolution().train(), (X,), mode="trace"))
    with pytest.raises(CaptureError, match="only a module"):
        freeze(capture(lambda x: x + 1, (X,), mode="trace"))
    with pytest.raises(CaptureError, match="freeze got a Sequential; it expects what capture"):
        freeze(convolution())
    with pytest.raises(CaptureError, match="frozen already"):
        freeze(freeze(capture(convolution().eval(), (X,), mode="trace")))
    with pytest.raises(CaptureError, match=r"save got a program captured with mode='make_fx'"):
        save(capture(torch.relu, (X,), mode="make_fx"), tmp_path / "graph.pt")
