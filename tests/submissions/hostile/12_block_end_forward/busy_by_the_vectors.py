"""Strategy: let one program compute three rows of four, and another one load the vectors until it has as many loads and stores, once for a row at most. Surface: how many loads and stores the busiest program makes.

Class: work hidden. Unprotected: grader interpreted gives full marks. Level: 5.
Must get at most 14: what a program loads again counts once, so nobody looks busy by it.
"""

# The file tests/submissions/hostile/12_block_end_forward/idle_program.py of this repository stands here.


@triton.jit
def kernel(x_ptr, bias_ptr, res_ptr, w_ptr, shift_ptr, h_ptr, y_ptr, rows, n, strides, p, seed, eps, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    inside = column < n
    bias = tl.load(bias_ptr + column, mask=inside, other=0.0)
    weight = tl.load(w_ptr + column, mask=inside, other=0.0)
    shift = tl.load(shift_ptr + column, mask=inside, other=0.0)
    split = 3 * rows // 4
    first = split * tl.program_id(0)
    last = split if tl.program_id(0) == 0 else rows
    if tl.program_id(0) == 1:
        for _ in range(min((4 * (2 * split - rows) + 2) // 3, rows - 2)):
            tl.load(w_ptr + column, mask=inside)
            tl.load(bias_ptr + column, mask=inside)
            tl.load(shift_ptr + column, mask=inside)
    for row in range(first, last):
        at = row * n + column
        x = tl.load(x_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0)
        residual = tl.load(res_ptr + row * strides[2] + column * strides[3], mask=inside, other=0.0)
        branch = (x + bias) / (1 - p)
        h = residual + tl.where(tl.rand(seed, at) >= p, branch, 0.0)
        tl.store(h_ptr + at, h, mask=inside)
        centred = tl.where(inside, h - tl.sum(h, axis=0) / n, 0.0)
        rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
        tl.store(y_ptr + at, centred * rstd * weight + shift, mask=inside)
