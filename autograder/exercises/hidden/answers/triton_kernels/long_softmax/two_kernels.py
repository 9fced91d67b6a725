@triton.jit
def statistics_kernel(x_ptr, top_ptr, total_ptr, n, r, c, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for block in range(tl.cdiv(n, BLOCK)):
        at = block * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * r + at * c, mask=at < n, other=-float("inf"))
        here = tl.max(x, axis=0)
        if here > top:
            total = total * tl.exp(top - here)
            top = here
        if here > -float("inf"):
            total += tl.sum(tl.exp(x - top), axis=0)
    tl.store(top_ptr + row, top)
    tl.store(total_ptr + row, total)


@triton.jit
def shares_kernel(x_ptr, out_ptr, top_ptr, total_ptr, n, r, c, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * r + at * c, mask=at < n)
    share = tl.exp(x - tl.load(top_ptr + row)) / tl.load(total_ptr + row)
    tl.store(out_ptr + row * n + at, share, mask=at < n)


def long_softmax(x):
    n_rows, n = x.shape
    out, top, total = torch.empty(x.shape, dtype=x.dtype), x.new_empty(n_rows), x.new_empty(n_rows)
    statistics_kernel[(n_rows,)](x, top, total, n, x.stride(0), x.stride(1), BLOCK=128)
    shares_kernel[(n_rows, triton.cdiv(n, 128))](x, out, top, total, n, x.stride(0), x.stride(1), BLOCK=128)
    return out
