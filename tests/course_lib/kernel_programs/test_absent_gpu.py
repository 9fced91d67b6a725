"""Code for a GPU that is not here: what its instructions say, and what is said where Triton cannot compile."""

import pytest

from course_lib.errors import KernelError
from course_lib.kernel_programs import GpuCode, absent_gpu, compile_for_absent_gpu
from course_lib.kernel_programs.absent_gpu_child import resources

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    y = tl.load(y_ptr + at, mask=at < n)
    tl.store(out_ptr + at, x + y, mask=at < n)


@triton.jit
def crowded_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x / tl.sum(x, axis=0))


@triton.jit
def wrong_kernel(x_ptr, BLOCK: tl.constexpr):
    tl.store(x_ptr, tl.arange(0, BLOCK + 1))


VECTORS = {"x_ptr": "*fp32", "y_ptr": "*fp32", "out_ptr": "*fp32"}


@pytest.fixture(scope="module")
def added() -> GpuCode:
    """The code of the sum of two vectors whose length is a multiple of 16."""
    return compile_for_absent_gpu(add_kernel, VECTORS | {"n": "i32:16"}, {"BLOCK": 512})


def test_aligned_vectors_are_read_four_numbers_at_a_time(added: GpuCode) -> None:
    # 512 elements of 128 threads are four a thread: one instruction for each input, and one for the output
    assert added.loads == {"ld.global.v4.b32": 2}
    assert added.stores == {"st.global.v4.b32": 1}
    assert added.ptx.count("ld.global.v4.b32") == 2


def test_a_length_of_which_nothing_is_known_is_read_one_number_at_a_time() -> None:
    code = compile_for_absent_gpu(add_kernel, VECTORS | {"n": "i32"}, {"BLOCK": 512}, capability=80)
    assert code.loads == {"ld.global.b32": 8}
    assert code.stores == {"st.global.b32": 4}
    assert ".target sm_80" in code.ptx


def test_registers_and_spills_are_those_of_the_assembler(added: GpuCode) -> None:
    if added.registers is None:
        pytest.skip("this Triton brings no tool that reads registers")
    assert 8 <= added.registers <= 64
    assert added.spilled_bytes == 0
    code = compile_for_absent_gpu(crowded_kernel, {"x_ptr": "*fp32", "out_ptr": "*fp32"}, {"BLOCK": 32768})
    assert code.registers == 255
    assert code.spilled_bytes is not None
    assert code.spilled_bytes > 0


def test_the_code_is_shown_by_its_counts(added: GpuCode) -> None:
    shown = repr(added)
    assert shown.startswith("add_kernel: registers of a thread ")
    assert shown.endswith("; reads 2 × ld.global.v4.b32; writes 1 × st.global.v4.b32")
    assert "registers of a thread unknown, bytes spilled unknown; reads none; writes none" in repr(
        GpuCode("k", None, None, {}, {}, "")
    )


def test_a_compiler_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(absent_gpu, "LIMIT_S", 0.01)
    with pytest.raises(KernelError, match=r"not compiled for sm_90 within 0\.01 s\. Take a smaller block"):
        compile_for_absent_gpu(add_kernel, VECTORS | {"n": "i32"}, {"BLOCK": 512})


def test_without_machine_code_nothing_is_known_of_registers() -> None:
    assert resources(b"") == (None, None)


def test_a_kernel_that_does_not_compile_is_refused_with_the_compilers_words() -> None:
    with pytest.raises(KernelError, match=r"wrong_kernel does not compile for sm_90: [\s\S]*power of 2"):
        compile_for_absent_gpu(wrong_kernel, {"x_ptr": "*fp32"}, {"BLOCK": 16})
