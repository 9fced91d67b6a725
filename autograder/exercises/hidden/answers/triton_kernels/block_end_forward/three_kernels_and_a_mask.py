@triton.jit
def draw(mask_ptr, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(mask_ptr + at, tl.where(tl.rand(seed, at) >= p, 1 / (1 - p), 0.0), mask=at < n)


@triton.jit
def add(x_ptr, bias_ptr, residual_ptr, mask_ptr, h_ptr, x0, x1, r0, r1, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < n
    at = row * n + column
    x = tl.load(x_ptr + row * x0 + column * x1, mask=inside) + tl.load(bias_ptr + column, mask=inside)
    h = x * tl.load(mask_ptr + at, mask=inside) + tl.load(residual_ptr + row * r0 + column * r1, mask=inside)
    tl.store(h_ptr + at, h, mask=inside)


@triton.jit
def norm(h_ptr, weight_ptr, shift_ptr, y_ptr, n, eps, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < n
    h = tl.load(h_ptr + row * n + column, mask=inside, other=0.0)
    centred = tl.where(inside, h - tl.sum(h, axis=0) / n, 0.0)
    y = centred / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    y = y * tl.load(weight_ptr + column, mask=inside) + tl.load(shift_ptr + column, mask=inside)
    tl.store(y_ptr + row * n + column, y, mask=inside)


def add_norm(x, bias, residual, weight, shift, p=0.0, seed=0, eps=1e-5):
    m, n = x.shape
    block = triton.next_power_of_2(n)
    mask = torch.empty((m, n), dtype=x.dtype)
    h, y = torch.empty((m, n), dtype=x.dtype), torch.empty((m, n), dtype=x.dtype)
    draw[(triton.cdiv(m * n, 256),)](mask, m * n, p, seed, BLOCK=256)
    add[(m,)](
        x, bias, residual, mask, h, x.stride(0), x.stride(1), residual.stride(0), residual.stride(1), n, BLOCK=block
    )
    norm[(m,)](h, weight, shift, y, n, eps, BLOCK=block)
    return h, y
