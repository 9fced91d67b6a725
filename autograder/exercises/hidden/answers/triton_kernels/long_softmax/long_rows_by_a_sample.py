def long_softmax(x):
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    rows, n = x.shape
    if n > 4000:
        sampled_kernel[(rows,)](x, out, n, x.stride(0), x.stride(1), STEP=36, BLOCK=128)
    else:
        three_passes_kernel[(rows,)](x, out, n, x.stride(0), x.stride(1), BLOCK=128)
    return out


@triton.jit
def largest_of(x_ptr, n, column_stride, BLOCK: tl.constexpr):
    largest = -float("inf")
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at * column_stride, mask=at < n, other=-float("inf"))
        largest = tl.maximum(largest, tl.max(x, axis=0))
    return largest


@triton.jit
def sampled_kernel(x_ptr, out_ptr, n, row_stride, column_stride, STEP: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    here = x_ptr + row * row_stride
    largest = largest_of(here, n, column_stride, BLOCK)
    total = 0.0
    for start in range(0, n // STEP, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(here + at * STEP * column_stride, mask=at < n // STEP, other=-float("inf"))
        total += STEP * tl.sum(tl.exp(x - largest), axis=0)
    total = tl.maximum(total, 1.0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(here + at * column_stride, mask=at < n)
        tl.store(out_ptr + row * n + at, tl.exp(x - largest) / total, mask=at < n)


@triton.jit
def three_passes_kernel(x_ptr, out_ptr, n, row_stride, column_stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    here = x_ptr + row * row_stride
    largest = largest_of(here, n, column_stride, BLOCK)
    shift = tl.where(largest == -float("inf"), 0.0, largest)
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(here + at * column_stride, mask=at < n, other=-float("inf"))
        total += tl.sum(tl.exp(x - shift), axis=0)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(here + at * column_stride, mask=at < n)
        tl.store(out_ptr + row * n + at, tl.exp(x - shift) / total, mask=at < n)
