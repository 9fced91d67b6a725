"""C++ programs of ours, built against the installed torch, run what was saved and agree with Python."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from course_lib.capture import capture
from course_lib.capture.archives import save
from course_lib.capture.cpp import build_runner
from course_lib.capture.packages import package
from course_lib.errors import CaptureError
from course_lib.models import TransformerConfig, TransformerLayer
from tests.drawn import some

SMALL = TransformerConfig(hidden_size=8, num_heads=2, intermediate_size=16)
PROGRAMS = Path(__file__).parents[4] / "work" / "cpp"  # kept from run to run; built anew when the source changes


class TwoResults(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if bool(scale > 0):
            x = x * scale
        return x, x.sum()


def an_archive_agrees(tmp_path):
    runner = build_runner("script", PROGRAMS)
    layer, x = TransformerLayer(SMALL).eval(), torch.randn(2, 5, 8)
    found = runner.run(save(capture(layer, (x,), mode="trace"), tmp_path / "layer.pt"), (x,))
    torch.testing.assert_close(found, layer(x))
    two = save(capture(TwoResults(), mode="script"), tmp_path / "two.pt")
    for scale in (torch.tensor(2.0), torch.tensor(-2.0)):
        results = runner.run(two, (x, scale))
        assert isinstance(results, tuple)
        torch.testing.assert_close(results, TwoResults()(x, scale))
    with pytest.raises(CaptureError, match=r"could not run .*missing\.pt"):
        runner.run(tmp_path / "missing.pt", (x,))


def a_package_agrees(tmp_path):
    from torch._inductor import config

    model, x = nn.Sequential(nn.Linear(8, 4), nn.GELU()), torch.randn(5, 8)
    # numbers do not depend on how well the code around the kernels is optimised
    with config.patch({"aot_inductor.compile_wrapper_opt_level": "O0"}):
        path = package(capture(model, (x,), mode="export"), tmp_path / "model.pt2")
    (found,) = build_runner("package", PROGRAMS).run(path, (x,))
    torch.testing.assert_close(found, model(x))


@pytest.mark.slow
@pytest.mark.parametrize("agrees", some((an_archive_agrees, a_package_agrees), 1, name="what runs in C++"))
def test_what_was_saved_runs_in_cpp_and_agrees(agrees, tmp_path):
    agrees(tmp_path)


def test_a_program_is_built_once_and_anew_when_its_source_is_newer(tmp_path, monkeypatch):
    compiler = tmp_path / "g++"  # notes each of its calls in what it writes
    compiler.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; echo >> "$2"; echo >> "$(dirname "$2")/calls"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(compiler))
    for kind in ("script", "script", "package"):  # one program for both
        executable = build_runner(kind, tmp_path / "made").executable
    assert len((tmp_path / "made" / "calls").read_text()) == 1
    os.utime(executable, (0, 0))
    build_runner("script", tmp_path / "made")
    assert len((tmp_path / "made" / "calls").read_text()) == 2
    assert sorted(path.name for path in executable.parent.iterdir()) == ["calls", executable.name]


def test_wrong_calls_are_refused_in_words(tmp_path, monkeypatch):
    with pytest.raises(CaptureError, match='knows "script" and "package"'):
        build_runner("onnx", tmp_path)
    with pytest.raises(CaptureError, match=r"ends in \.pt2"):
        package(capture(nn.ReLU(), (torch.ones(2),), mode="export"), tmp_path / "program.pt")
    with pytest.raises(CaptureError, match='expects mode="export"'):
        package(capture(nn.ReLU(), (torch.ones(2),), mode="trace"), tmp_path / "program.pt2")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(CaptureError, match=r"no g\+\+ on this machine"):
        build_runner("script", tmp_path)
