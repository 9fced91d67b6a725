ROWS = tl.constexpr(2)


@triton.jit
def rows_kernel(x, b, r, w, s, h, y, x0, x1, r0, r1, m, n, p, seed, eps, COLUMNS: tl.constexpr):
    i = (tl.program_id(0) * ROWS + tl.arange(0, ROWS))[:, None]
    j = tl.arange(0, COLUMNS)[None, :]
    ok = (i < m) & (j < n)
    branch = tl.load(x + i * x0 + j * x1, mask=ok, other=0.0) + tl.load(b + j, mask=j < n, other=0.0)
    keep = tl.rand(seed, i * n + j) >= p
    total = tl.load(r + i * r0 + j * r1, mask=ok, other=0.0) + tl.where(keep, branch / (1 - p), 0.0)
    tl.store(h + i * n + j, total, mask=ok)
    mean = tl.sum(total, axis=1)[:, None] / n
    away = tl.where(j < n, total - mean, 0.0)
    deviation = tl.sqrt(tl.sum(away * away, axis=1)[:, None] / n + eps)
    scaled = away / deviation * tl.load(w + j, mask=j < n, other=0.0)
    tl.store(y + i * n + j, scaled + tl.load(s + j, mask=j < n, other=0.0), mask=ok)


def add_norm(x, bias, residual, weight, shift, p=0.0, seed=0, eps=1e-5):
    m, n = x.size(0), x.size(1)
    h = torch.empty((m, n), dtype=torch.float32)
    y = torch.empty((m, n), dtype=torch.float32)
    grid = (triton.cdiv(m, 2),)
    rows_kernel[grid](
        x,
        bias,
        residual,
        weight,
        shift,
        h,
        y,
        x.stride(0),
        x.stride(1),
        residual.stride(0),
        residual.stride(1),
        m,
        n,
        p,
        seed,
        eps,
        COLUMNS=triton.next_power_of_2(n),
    )
    return h, y
