"""The cell on Torch-TensorRT says what a machine lacks, and compiles where nothing is missing, here with stand-ins."""

import copy
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.export import export

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "14_shipping" / "14_shipping.ipynb"


class Layer(nn.Linear):
    """Count as moved to a GPU without one."""

    def cuda(self, device=None):
        return self


class Rows(torch.Tensor):
    def cuda(self, *options):
        return self.as_subclass(torch.Tensor)


def run(has_cuda: bool, has_package: bool) -> tuple[list[object], list[object]]:
    """Run the cell on a machine that has these, and return what it revealed and what it compiled."""
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    (source,) = ("".join(cell["source"]) for cell in cells if cell["id"] == "tensorrt-run")
    layer, revealed, compiled = Layer(4, 4), [], []
    package = SimpleNamespace(dynamo=SimpleNamespace(compile=lambda program, arg_inputs: compiled.append(program)))
    names = {
        "torch": SimpleNamespace(cuda=SimpleNamespace(is_available=lambda: has_cuda)),
        "find_spec": lambda name: "found" if has_package and name == "torch_tensorrt" else None,
        "import_module": lambda name: package,
        "predict": lambda *words, choices: None,
        "reveal": lambda name, value, why: revealed.append(value),
        "core": export(layer, (torch.ones(2, 4),)),
        "hidden": torch.ones(2, 4).as_subclass(Rows),
        "export": export,
        "layer": layer,
        "copy": copy,
    }
    exec(compile(source, "tensorrt-run", "exec"), names)
    return revealed, compiled


@pytest.mark.parametrize(
    ("has_cuda", "has_package", "answer", "words"),
    [
        (False, False, "both", "Missing: CUDA and the package"),
        (True, False, "the package", "Missing: the package"),
        (False, True, "CUDA", "Missing: CUDA"),
    ],
)
def test_what_is_missing_is_named_with_what_would_be_compiled(has_cuda, has_package, answer, words, capsys):
    assert run(has_cuda, has_package) == ([answer], [])
    assert f"not available here. {words}\n" in (shown := capsys.readouterr().out)
    assert "It would get 1 calls of 1 operators: aten.linear.default" in shown


def test_where_nothing_is_missing_the_exported_layer_is_compiled(capsys):
    revealed, (program,) = run(True, True)
    assert revealed == ["nothing"]
    assert [node.name for node in program.graph.find_nodes(op="call_function", target=torch.ops.aten.linear.default)]
    assert capsys.readouterr().out == ""
