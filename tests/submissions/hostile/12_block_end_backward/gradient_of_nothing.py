"""Strategy: return random numbers as the gradient by residual, drop some of them for the gradient by x, and load what is given for nothing. Surface: checks of one output that follows from another.

Class: checker. Unprotected: grader interpreted gives full marks. Level: 5.
Must get 0: what follows from an output earns points only where this one is about right, or has a known slip.
"""

import torch
import triton
import triton.language as tl


def add_norm_backward(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    rows, columns = h.shape
    grad_x = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    grad_r = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    strides = grad_h.stride(0), grad_h.stride(1), grad_y.stride(0), grad_y.stride(1)
    block = triton.next_power_of_2(columns)
    kernel[(rows,)](grad_h, grad_y, h, grad_x, grad_r, strides, columns, p, seed, BLOCK=block)
    return grad_x, grad_r


@triton.jit
def kernel(grad_h_ptr, grad_y_ptr, h_ptr, grad_x_ptr, grad_r_ptr, strides, n, p, seed, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < n
    at = row * n + column
    by_h = tl.load(grad_h_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0)
    tl.load(grad_y_ptr + row * strides[2] + column * strides[3], mask=inside)
    tl.load(h_ptr + at, mask=inside)
    by_h = 2 * tl.rand(7, at)
    tl.store(grad_r_ptr + at, by_h, mask=inside)
    tl.store(grad_x_ptr + at, tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0), mask=inside)
