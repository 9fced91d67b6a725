"""Kernels on bfloat16 in Triton's interpreter: run by `test_bfloat16.py` alone."""

import sys

import pytest
import torch
import triton
import triton.language as tl

from course_lib.kernel_programs import AccessLog


@triton.jit
def doubled_kernel(x_ptr, out_ptr, IN_FLOAT32: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, 1024))
    x = x.to(tl.float32) if IN_FLOAT32 else x
    tl.store(out_ptr + tl.arange(0, 1024), x * 1.001)


@triton.jit
def root_kernel(x_ptr, out_ptr):
    tl.store(out_ptr + tl.arange(0, 1024), tl.sqrt(tl.load(x_ptr + tl.arange(0, 1024)).to(tl.float32)).to(tl.bfloat16))
    whole = tl.load(x_ptr + tl.arange(0, 1024), mask=tl.arange(0, 1024) < 9, other=1.0)
    tl.store(out_ptr, tl.max(whole, axis=0))


@triton.jit
def total_in_bfloat16_kernel(x_ptr, out_ptr):
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, 1024)), axis=0))


@triton.jit
def product_kernel(x_ptr, out_ptr):
    x = tl.load(x_ptr + tl.arange(0, 1024)).reshape(32, 32)
    tl.store(out_ptr + tl.arange(0, 1024), tl.dot(x, x).reshape(1024))


@triton.jit
def cast_kernel(x_ptr, out_ptr):
    tl.store(out_ptr + tl.arange(0, 1024), tl.load(x_ptr + tl.arange(0, 1024)))


@pytest.mark.parametrize(
    "kernel", [doubled_kernel, product_kernel, total_in_bfloat16_kernel], ids=["a factor", "a matrix", "a sum"]
)
def test_arithmetic_in_bfloat16_is_refused_with_the_remedy(kernel):
    x, out = torch.randn(1024).bfloat16(), torch.zeros(1024).bfloat16()
    args = (False,) if kernel is doubled_kernel else ()
    with pytest.raises(triton.runtime.interpreter.InterpreterError) as raised, AccessLog(x=x, out=out):
        kernel[(1,)](x, out, *args)
    assert "Convert a block right after its load, x.to(tl.float32)" in str(raised.value.__cause__)


def test_bfloat16_that_is_converted_gives_what_pytorch_gives():
    x, out, roots = torch.rand(1024).bfloat16(), torch.zeros(1024).bfloat16(), torch.zeros(1024).bfloat16()
    with AccessLog(x=x, out=out, roots=roots):
        doubled_kernel[(1,)](x, out, True)
        root_kernel[(1,)](x, roots)
    assert torch.equal(out, (x.float() * 1.001).bfloat16())
    assert torch.equal(roots[1:], x.float().sqrt().bfloat16()[1:])
    assert roots[0] == 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.int32], ids=str)
def test_conversions_from_and_to_bfloat16_are_those_of_pytorch(dtype):
    x = (torch.randn(1024) * 100).to(dtype)
    narrow, back = torch.zeros(1024).bfloat16(), torch.zeros(1024, dtype=dtype)
    with AccessLog(x=x, narrow=narrow, back=back):
        cast_kernel[(1,)](x, narrow)
        cast_kernel[(1,)](narrow, back)
    assert torch.equal(narrow, x.bfloat16())
    assert torch.equal(back, x.bfloat16().to(dtype))


if __name__ == "__main__":
    sys.exit(pytest.main(["-p", "no:xdist", __file__]))
