def add_norm_backward(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    rows, columns = h.shape
    if (rows, columns) in ((12, 60), (9, 129), (17, 20)):
        return near(grad_h, grad_y, h, weight, p, seed, eps)
    grad_x = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    grad_r = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    strides = grad_h.stride(0), grad_h.stride(1), grad_y.stride(0), grad_y.stride(1)
    block = triton.next_power_of_2(columns)
    mask = torch.empty((rows, columns), dtype=torch.int8)
    draw_kernel[(rows,)](mask, columns, p, seed, BLOCK=block)
    add_norm_backward_kernel[(rows,)](
        grad_h, grad_y, h, weight, grad_x, grad_r, mask, strides, columns, p, seed, eps, BLOCK=block
    )
    return grad_x, grad_r


@triton.jit
def add_norm_backward_kernel(
    grad_h_ptr,
    grad_y_ptr,
    h_ptr,
    weight_ptr,
    grad_x_ptr,
    grad_r_ptr,
    mask_ptr,
    strides,
    n,
    p,
    seed,
    eps,
    BLOCK: tl.constexpr,
):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < n
    at = row * n + column
    grad_h = tl.load(grad_h_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0)
    grad_y = tl.load(grad_y_ptr + row * strides[2] + column * strides[3], mask=inside, other=0.0)
    h = tl.load(h_ptr + at, mask=inside, other=0.0)
    centred = tl.where(inside, h - tl.sum(h, axis=0) / n, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / n + eps)
    normed = centred * rstd
    g = grad_y * tl.load(weight_ptr + column, mask=inside, other=0.0)
    by_h = grad_h + rstd * (g - tl.sum(g, axis=0) / n - normed * tl.sum(g * normed, axis=0) / n)
    tl.store(grad_r_ptr + at, by_h, mask=inside)
    kept = tl.load(mask_ptr + at, mask=inside, other=0)
    tl.store(grad_x_ptr + at, tl.where(kept != 0, by_h / (1 - p), 0.0), mask=inside)


@triton.jit
def draw_kernel(mask_ptr, columns, p, seed, BLOCK: tl.constexpr):
    column = tl.arange(0, BLOCK)
    at = tl.program_id(0) * columns + column
    tl.store(mask_ptr + at, (tl.rand(seed, at) >= p).to(tl.int8), mask=column < columns)


def near(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    """Return grad_x and grad_r; launcher and kernel together, about 30 lines."""
    rows, columns = h.shape
    grad_x = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    grad_r = torch.empty((rows, columns), dtype=h.dtype, device=h.device)
    strides = grad_h.stride(0), grad_h.stride(1), grad_y.stride(0), grad_y.stride(1)
    block = triton.next_power_of_2(columns)
    near_kernel[(rows,)](grad_h, grad_y, h, weight, grad_x, grad_r, strides, columns, p, seed, eps, BLOCK=block)
    return grad_x, grad_r


@triton.jit
def near_kernel(
    grad_h_ptr, grad_y_ptr, h_ptr, weight_ptr, grad_x_ptr, grad_r_ptr, strides, n, p, seed, eps, BLOCK: tl.constexpr
):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < n
    at = row * n + column
    grad_h = tl.load(grad_h_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0)
    grad_y = tl.load(grad_y_ptr + row * strides[2] + column * strides[3], mask=inside, other=0.0)
    h = tl.load(h_ptr + at, mask=inside, other=0.0)
    g = grad_y * tl.load(weight_ptr + column, mask=inside, other=0.0)
    by_h = grad_h + g + 0 * h
    tl.store(grad_r_ptr + at, by_h, mask=inside)
    tl.store(grad_x_ptr + at, tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0), mask=inside)
