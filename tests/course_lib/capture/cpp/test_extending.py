"""Our passes over TorchScript's graphs, compiled once for all tests here."""

from pathlib import Path

import pytest
import torch

from course_lib.capture.cpp import build_passes
from course_lib.errors import CaptureError

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
