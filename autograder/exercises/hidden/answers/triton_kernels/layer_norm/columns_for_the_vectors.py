def layer_norm(x, weight, bias, eps):
    """Return y, mean and rstd. Below it: layer_norm_backward(grad, x, weight, mean, rstd), and the kernels."""
    rows, n = x.shape
    y = torch.empty((rows, n), dtype=x.dtype)
    mean, rstd = torch.empty(rows, dtype=torch.float32), torch.empty(rows, dtype=torch.float32)
    block = triton.next_power_of_2(n)
    forward_kernel[(rows,)](x, weight, bias, y, mean, rstd, n, x.stride(0), x.stride(1), eps, BLOCK=block)
    return y, mean, rstd


@triton.jit
def forward_kernel(x_ptr, w_ptr, b_ptr, y_ptr, mean_ptr, rstd_ptr, n, x_row, x_column, eps, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * x_row + at * x_column, mask=at < n, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / n
    away = tl.where(at < n, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(away * away, axis=0) / n + eps)
    w = tl.load(w_ptr + at, mask=at < n).to(tl.float32)
    b = tl.load(b_ptr + at, mask=at < n).to(tl.float32)
    tl.store(y_ptr + row * n + at, (away * rstd * w + b).to(y_ptr.dtype.element_ty), mask=at < n)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)


def layer_norm_backward(grad, x, weight, mean, rstd):
    rows, n = x.shape
    grad_x, grad_w, grad_b = x.new_empty((rows, n)), x.new_empty(n), x.new_empty(n)
    strides = (grad.stride(0), grad.stride(1), x.stride(0), x.stride(1))
    row_kernel[(rows,)](grad, x, weight, mean, rstd, grad_x, n, strides, BLOCK=triton.next_power_of_2(n))
    column_kernel[(triton.cdiv(n, 32),)](grad, x, mean, rstd, grad_w, grad_b, rows, n, strides, ROWS=8, COLUMNS=32)
    return grad_x, grad_w, grad_b


@triton.jit
def row_kernel(grad_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, out_ptr, n, s, BLOCK: tl.constexpr):
    row, at = tl.program_id(0), tl.arange(0, BLOCK)
    mask = at < n
    grad = tl.load(grad_ptr + row * s[0] + at * s[1], mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * s[2] + at * s[3], mask=mask, other=0.0).to(tl.float32)
    g = grad * tl.load(w_ptr + at, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    hat = (x - tl.load(mean_ptr + row)) * rstd
    first = tl.sum(g, axis=0) / n
    second = tl.sum(g * hat, axis=0) / n
    tl.store(out_ptr + row * n + at, (rstd * (g - first - hat * second)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def column_kernel(
    grad_ptr, x_ptr, mean_ptr, rstd_ptr, w_ptr, b_ptr, rows, n, s, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    for_w = tl.zeros([COLUMNS], tl.float32)
    for_b = tl.zeros([COLUMNS], tl.float32)
    for start in range(0, rows, ROWS):
        row = start + tl.arange(0, ROWS)
        ok = (row < rows)[:, None] & (at < n)[None, :]
        grad = tl.load(grad_ptr + row[:, None] * s[0] + at[None, :] * s[1], mask=ok, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row[:, None] * s[2] + at[None, :] * s[3], mask=ok, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)
        for_w += tl.sum(grad * (x - mean[:, None]) * rstd[:, None], axis=0)
        for_b += tl.sum(grad, axis=0)
    tl.store(w_ptr + at, for_w.to(w_ptr.dtype.element_ty), mask=at < n)
    tl.store(b_ptr + at, for_b.to(b_ptr.dtype.element_ty), mask=at < n)
