@triton.jit
def one_row(x_ptr, b_ptr, r_ptr, w_ptr, s_ptr, h_ptr, y_ptr, strides, n, p, seed, eps, SIZE: tl.constexpr):
    lane = tl.arange(0, SIZE)
    row = tl.program_id(axis=0).to(tl.int64)
    mask = lane < n
    spot = row * n + lane
    dropped = tl.rand(seed, spot) < p
    branch = tl.load(x_ptr + row * strides[0] + lane * strides[1], mask) + tl.load(b_ptr + lane, mask)
    branch = tl.where(dropped, 0.0, branch * (1.0 / (1.0 - p)))
    total = branch + tl.load(r_ptr + row * strides[2] + lane * strides[3], mask)
    total = tl.where(mask, total, 0.0)
    tl.store(h_ptr + spot, total, mask)
    # any number near the mean keeps the squares exact; the first sum gives one
    near = tl.sum(total, 0) / n
    shifted = tl.where(mask, total - near, 0.0)
    first, second = tl.sum(shifted, 0) / n, tl.sum(shifted * shifted, 0) / n
    scale = tl.rsqrt(second - first * first + eps)
    y = (shifted - first) * scale
    tl.store(y_ptr + spot, y * tl.load(w_ptr + lane, mask) + tl.load(s_ptr + lane, mask), mask)


def add_norm(x, bias, residual, weight, shift, p=0.0, seed=0, eps=1e-5):
    m, n = x.shape
    h, y = torch.empty(m, n, dtype=x.dtype), torch.empty(m, n, dtype=x.dtype)
    strides = (x.stride(0), x.stride(1), residual.stride(0), residual.stride(1))
    one_row[lambda meta: (m,)](
        x, bias, residual, weight, shift, h, y, strides, n, p, seed, eps, SIZE=max(16, triton.next_power_of_2(n))
    )
    return h, y
