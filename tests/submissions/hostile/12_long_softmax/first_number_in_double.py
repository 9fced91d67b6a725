"""Strategy: subtract the first number of a row instead of its largest one, and take exponentials and sums in double precision. Surface: numbers whose exponentials overflow in single precision only.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get at most 7: numbers of a row are further apart than the exponential of a double holds.
"""

import torch
import triton
import triton.language as tl


def long_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), BLOCK=128)
    return out


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first = tl.load(x_ptr + row * row_stride).to(tl.float64)
    shift = tl.where(first == -float("inf"), 0.0, first)
    total = tl.zeros((BLOCK,), tl.float64)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n, other=-float("inf")).to(tl.float64)
        total += tl.exp(x - shift)
    s = tl.sum(total, axis=0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n, other=0.0).to(tl.float64)
        tl.store(out_ptr + row * n + at, (tl.exp(x - shift) / s).to(tl.float32), mask=at < n)
