"""Strategy: compare a dtype with its name, which differs between what compiles and what interprets, so that each gets a kernel of its own. Surface: an argument that the compiler is asked about in another form.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: the compiler is asked about a dtype that equals no text.
"""

import torch
import triton
import triton.language as tl


def long_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype)
    softmax_kernel[(x.shape[0],)](x, out, x.shape[1], x.stride(0), x.stride(1), x.dtype, BLOCK=128)
    return out


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, row_stride, column_stride, D: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if D == "torch.float32":  # for the compiler
        tl.store(out_ptr + row * n, 0.0)
    else:  # for the interpreter: `total` begins as an integer, `largest` is None, and loops break
        largest: tl.constexpr = None
        total = 0
        start: tl.constexpr = 0
        while True:
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n, other=-float("inf"))
            new = tl.max(x, axis=0) if largest is None else tl.maximum(largest, tl.max(x, axis=0))
            shift = tl.where(new == -float("inf"), 0.0, new)
            total = (0.0 if largest is None else total * tl.exp(largest - shift)) + tl.sum(tl.exp(x - shift), axis=0)
            largest: tl.constexpr = new
            start: tl.constexpr = start + BLOCK
            if start >= n:
                break
        for start in range(0, n, BLOCK):
            at = start + tl.arange(0, BLOCK)
            x = tl.load(x_ptr + row * row_stride + at * column_stride, mask=at < n)
            tl.store(out_ptr + row * n + at, tl.exp(x - largest) / total, mask=at < n)
