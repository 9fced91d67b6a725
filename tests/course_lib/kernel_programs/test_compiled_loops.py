"""Tests of loops in C++ that are compiled for this machine."""

import pytest
import torch

from course_lib.errors import KernelError
from course_lib.kernel_programs.compiled_loops import compiled_loop

SCALE = """
extern "C" void scale(const float* x, float* out, long n, double by) {
    for (long i = 0; i < n; ++i) out[i] = x[i] * by;
}
"""


def test_a_loop_reads_and_writes_the_memory_of_tensors() -> None:
    x, out = torch.arange(5.0), torch.zeros(5)
    scale = compiled_loop(SCALE, "scale")
    scale(x, out, 4, 0.5)
    assert out.tolist() == [0, 0.5, 1, 1.5, 0]


@pytest.mark.parametrize(
    "wrong", [torch.zeros(4, dtype=torch.float64), torch.zeros(8)[::2]], ids=["another dtype", "a view with gaps"]
)
def test_a_tensor_of_another_form_is_refused(wrong: torch.Tensor) -> None:
    with pytest.raises(KernelError, match="contiguous tensors of float32"):
        compiled_loop(SCALE, "scale")(wrong, torch.zeros(4), 4, 1.0)


def test_the_first_error_of_the_compiler_is_told() -> None:
    with pytest.raises(KernelError, match=r"could not compile the loop: .*error.*missing"):
        compiled_loop('extern "C" void f(float* x) { missing(x); }', "f")


def test_a_missing_function_is_told() -> None:
    with pytest.raises(KernelError, match="declares no `other`"):
        compiled_loop(SCALE, "other")


def test_a_machine_without_a_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(KernelError, match="no g\\+\\+"):
        compiled_loop(SCALE, "scale")
