"""C++ programs of ours, built against the installed torch, run what was saved and agree with Python."""

import json
import os
import re
import runpy
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import nn

from course_lib.capture import capture
from course_lib.capture.cpp import Passes, build_passes, build_runner
from course_lib.capture.saved_programs import package, save
from course_lib.errors import CaptureError
from course_lib.models import TransformerConfig, TransformerLayer
from tests.drawn import some

SMALL = TransformerConfig(hidden_size=8, num_heads=2, intermediate_size=16)
PROGRAMS = Path(__file__).parents[4] / "work" / "cpp"  # kept from run to run; built anew when the source changes
NOTEBOOK = Path(__file__).parents[4] / "notebooks/03_torchscript/03_torchscript.ipynb"


def cell_of_the_notebook(name: str) -> str:
    (found,) = (each for each in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if each["id"] == name)
    return "".join(found["source"])


def recorded(cell: str) -> list[str]:
    """What the second column of the table in a text cell says."""
    rows = re.findall(r"^\| [^|]+ \| ([^|]+) \|$", cell_of_the_notebook(cell), re.MULTILINE)
    return [row.replace("`", "") for row in rows[1:]]


def run_cells(names: tuple[str, ...], folder: Path, known: Mapping[str, Any]) -> None:
    """Run cells of the notebook with what `known` names; they stand in a file, since TorchScript reads the text."""
    text = "\n".join(map(cell_of_the_notebook, names)).replace("BUILD = False", "BUILD = True")
    (folder / "cells.py").write_text(text.replace('Path.home() / ".cache" / "fusion-course"', "PROGRAMS"))
    runpy.run_path(str(folder / "cells.py"), {"torch": torch, **known}, "cells")


class TwoResults(nn.Module):
    def forward(self, x: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if bool(scale > 0):
            x = x * scale
        return x, x.sum()


class SeveralResults(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[dict[str, torch.Tensor], list[str], dict[int, list[float]], list[int]]:
        if bool(x.sum() < 0):
            raise ValueError("the sum is below zero")
        return {"x": x, "double": x * 2}, ["a", "b"], {1: [0.5]}, [x.dim()]


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
    several = save(capture(SeveralResults(), mode="script"), tmp_path / "several.pt")
    assert runner.run(several, (torch.tensor([2.0]),)) == SeveralResults()(torch.tensor([2.0]))
    with pytest.raises(CaptureError, match="the sum is below zero") as failed:
        runner.run(several, (torch.tensor([-2.0]),))
    assert "frame #" not in str(failed.value)


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


BUILT = Path(__file__).parents[4] / "work" / "cpp"  # kept from run to run; built anew when the source changes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def passes():
    return build_passes(BUILT)


def bias_relu(x, b):
    return torch.relu(x + b) + torch.relu(torch.add(x, b, alpha=2))


def bias_relu_again(x, b):  # TorchScript compiles, and optimises, a function once
    return torch.relu(x + b)


def gate(x, y):
    return torch.tanh(x * y) * torch.sigmoid(x)


def kinds_after(function, *inputs):
    """The kinds of the optimised graph, after a few runs without gradients; the result is compared with eager."""
    script = torch.jit.script(function)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(script(*inputs), function(*inputs))
        return [node.kind() for node in script.graph_for(*inputs).nodes()]


def test_the_rewrite_takes_the_sum_and_leaves_the_scaled_one_alone(passes):
    inputs = torch.randn(2, 3), torch.randn(3)
    with passes.enabled("rewrite"):
        kinds = kinds_after(bias_relu, *inputs)
    assert kinds.count("course_script::bias_relu") == 1
    assert kinds.count("aten::relu") == 1
    assert "course_script::bias_relu" not in kinds_after(bias_relu_again, *inputs), "switched off again"


def test_a_group_is_compiled_once_a_shape_and_falls_back_where_it_cannot_loop(passes):
    before = dict(passes.counts)
    with passes.enabled("compile"):
        kinds = kinds_after(gate, torch.randn(2, 3), torch.randn(2, 3))
        assert [k for k in kinds if "Constant" not in k] == ["course_script::group"]
        assert passes.counts["compilations"] == before["compilations"] + 1

        script = torch.jit.script(gate)
        for shapes in (((4, 5), (4, 5)), ((4, 5), (4, 5)), ((4, 5), (5,)), ((4, 5), (4, 5)), ((3, 1), (3, 1))):
            inputs = [torch.randn(shape) for shape in shapes]
            with torch.no_grad():
                torch.testing.assert_close(script(*inputs), gate(*inputs))
    assert passes.counts["fallbacks"] > before["fallbacks"]


def test_the_notebook_records_what_cpp_prints(tmp_path, capsys):
    known = {each.__name__: each for each in (capture, save, build_runner, CaptureError, Path, TemporaryDirectory)}
    run_cells(("doors-program", "doors-wrong", "cpp-run"), tmp_path, known | {"PROGRAMS": PROGRAMS})
    assert capsys.readouterr().out.splitlines()[-1] == " ".join(recorded("save-look"))


def test_the_notebook_records_what_the_passes_do(passes, tmp_path, capsys):
    before = dict(passes.counts)

    class Fresh:
        enabled = passes.enabled
        counts = property(lambda self: {name: found - before[name] for name, found in passes.counts.items()})

    run_cells(("passes-rewrite", "passes-compile"), tmp_path, {"passes": Fresh()})
    rewritten, compiled = capsys.readouterr().out.splitlines()
    kinds, group = recorded("passes-look")
    assert rewritten == str(kinds.split())
    kind, compilations, fallbacks = re.fullmatch(r"(\S+), with (\d+) compilations and (\d+) fallbacks", group).groups()
    assert compiled == f"{[kind]} {{'compilations': {compilations}, 'fallbacks': {fallbacks}}}"


def test_numbers_that_are_none_stay_none_in_a_group(passes):
    odd = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0])
    with passes.enabled("compile"):
        assert "course_script::group" in kinds_after(gate_with_relu, odd, odd)


def gate_with_relu(x, y):
    return torch.nan_to_num(torch.relu(x * y), nan=-7.0)


def test_without_a_compiler_one_sentence_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CaptureError, match=r"no g\+\+ on this machine to compile passes\.cpp"):
        build_passes(tmp_path)


def test_a_pass_that_the_library_does_not_have_is_refused_by_name():
    with (
        pytest.raises(CaptureError, match="There is no pass 'fuse'"),
        Passes(None).enabled("fuse"),
    ):
        pass
