@triton.jit
def mean(values, n):
    return tl.sum(values, axis=0) / n


@triton.jit
def factors(position, p, seed):
    return tl.where(tl.rand(seed, position) < p, 0.0, 1.0 / (1.0 - p))


@triton.jit
def through_norm(g, h, inside, n, eps):
    centred = tl.where(inside, h - mean(h, n), 0.0)
    rstd = tl.rsqrt(mean(centred * centred, n) + eps)
    return rstd * (g - mean(g, n)) - centred * (rstd * rstd * rstd) * mean(g * centred, n)


@triton.jit
def kernel(gh, gy, h, w, gx, gr, gh0, gh1, gy0, gy1, n, p, seed, eps, N: tl.constexpr):
    i, j = tl.program_id(0), tl.arange(0, N)
    inside = j < n
    g = tl.load(gy + i * gy0 + j * gy1, inside, 0.0) * tl.load(w + j, inside, 0.0)
    by_h = through_norm(g, tl.load(h + i * n + j, inside, 0.0), inside, n, eps)
    by_h += tl.load(gh + i * gh0 + j * gh1, inside, 0.0)
    tl.store(gr + i * n + j, by_h, inside)
    tl.store(gx + i * n + j, by_h * factors(i * n + j, p, seed), inside)


def add_norm_backward(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    n = h.size(1)
    gx = torch.empty_like(h)
    gr = torch.empty_like(h)
    kernel[h.shape[:1]](
        grad_h,
        grad_y,
        h,
        weight,
        gx,
        gr,
        grad_h.stride(0),
        grad_h.stride(1),
        grad_y.stride(0),
        grad_y.stride(1),
        n,
        p,
        seed,
        eps,
        N=triton.next_power_of_2(n),
    )
    return gx, gr
