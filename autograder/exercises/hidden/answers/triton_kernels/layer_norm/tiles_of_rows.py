@triton.jit
def norm_tile(x_ptr, w_ptr, b_ptr, y_ptr, m_ptr, r_ptr, rows, n, s0, s1, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    ok = (row < rows)[:, None] & (at < n)[None, :]
    x = tl.load(x_ptr + row[:, None] * s0 + at[None, :] * s1, mask=ok, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=1) / n
    d = tl.where(ok, x - mean[:, None], 0.0)
    rstd = tl.rsqrt(tl.sum(d * d, axis=1) / n + eps)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = d * rstd[:, None] * w[None, :] + b[None, :]
    tl.store(y_ptr + row[:, None] * n + at[None, :], y.to(y_ptr.dtype.element_ty), mask=ok)
    tl.store(m_ptr + row, mean, mask=row < rows)
    tl.store(r_ptr + row, rstd, mask=row < rows)


def layer_norm(x, weight, bias, eps):
    rows, n = x.shape
    y = torch.empty(x.shape, dtype=x.dtype)
    mean, rstd = torch.empty(rows, dtype=torch.float32), torch.empty(rows, dtype=torch.float32)
    norm_tile[(triton.cdiv(rows, 4),)](
        x, weight, bias, y, mean, rstd, rows, n, x.stride(0), x.stride(1), eps, ROWS=4, BLOCK=triton.next_power_of_2(n)
    )
    return y, mean, rstd


@triton.jit
def tile_gradients(
    g_ptr,
    x_ptr,
    w_ptr,
    m_ptr,
    r_ptr,
    dx_ptr,
    pw_ptr,
    pb_ptr,
    rows,
    n,
    g0,
    g1,
    x0,
    x1,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    program = tl.program_id(0)
    row = program * ROWS + tl.arange(0, ROWS)
    at = tl.arange(0, BLOCK)
    ok = (row < rows)[:, None] & (at < n)[None, :]
    grad = tl.load(g_ptr + row[:, None] * g0 + at[None, :] * g1, mask=ok, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row[:, None] * x0 + at[None, :] * x1, mask=ok, other=0.0).to(tl.float32)
    mean = tl.load(m_ptr + row, mask=row < rows, other=0.0)
    rstd = tl.load(r_ptr + row, mask=row < rows, other=0.0)
    w = tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    hat = tl.where(ok, (x - mean[:, None]) * rstd[:, None], 0.0)
    g = grad * w[None, :]
    c1 = tl.sum(g * hat, axis=1) / n
    c2 = tl.sum(g, axis=1) / n
    dx = (g - hat * c1[:, None] - c2[:, None]) * rstd[:, None]
    tl.store(dx_ptr + row[:, None] * n + at[None, :], dx.to(dx_ptr.dtype.element_ty), mask=ok)
    tl.store(pw_ptr + program * n + at, tl.sum(grad * hat, axis=0), mask=at < n)
    tl.store(pb_ptr + program * n + at, tl.sum(grad, axis=0), mask=at < n)


@triton.jit
def finish(pw_ptr, pb_ptr, dw_ptr, db_ptr, parts, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    dw = tl.zeros([BLOCK], tl.float32)
    db = tl.zeros([BLOCK], tl.float32)
    for part in range(parts):
        dw += tl.load(pw_ptr + part * n + at, mask=at < n, other=0.0)
        db += tl.load(pb_ptr + part * n + at, mask=at < n, other=0.0)
    tl.store(dw_ptr + at, dw.to(dw_ptr.dtype.element_ty), mask=at < n)
    tl.store(db_ptr + at, db.to(db_ptr.dtype.element_ty), mask=at < n)


def layer_norm_backward(grad, x, weight, mean, rstd):
    rows, n = x.shape
    parts, block = triton.cdiv(rows, 16), triton.next_power_of_2(n)
    dx, dw, db = torch.empty(x.shape, dtype=x.dtype), torch.empty_like(weight), torch.empty_like(weight)
    pw, pb = torch.empty((parts, n), dtype=torch.float32), torch.empty((parts, n), dtype=torch.float32)
    tile_gradients[(parts,)](
        grad,
        x,
        weight,
        mean,
        rstd,
        dx,
        pw,
        pb,
        rows,
        n,
        grad.stride(0),
        grad.stride(1),
        x.stride(0),
        x.stride(1),
        ROWS=16,
        BLOCK=block,
    )
    finish[(1,)](pw, pb, dw, db, parts, n, BLOCK=block)
    return dx, dw, db
