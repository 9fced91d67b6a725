@triton.jit
def kernel(gh, gy, h, w, gx, gr, s0, s1, s2, s3, n, p, seed, eps, SIZE: tl.constexpr):
    lane = tl.arange(0, SIZE)
    row = tl.program_id(0)
    mask = lane < n
    spot = row * n + lane
    h_row = tl.load(h + spot, mask, other=0.0)
    mu = tl.sum(h_row, 0) / n
    h_row = tl.where(mask, h_row - mu, 0.0)
    var = tl.sum(h_row * h_row, 0) / n + eps
    g = tl.load(gy + row * s2 + lane * s3, mask, other=0.0) * tl.load(w + lane, mask, other=0.0)
    # one over var in place of two products with one over the root
    along = tl.sum(g * h_row, 0) / n / var
    total = tl.load(gh + row * s0 + lane * s1, mask, other=0.0) + (g - tl.sum(g, 0) / n - h_row * along) / tl.sqrt(var)
    tl.store(gr + spot, total, mask)
    dropped = tl.rand(seed, spot) < p
    tl.store(gx + spot, tl.where(dropped, 0.0, total * (1.0 / (1.0 - p))), mask)


def add_norm_backward(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    m, n = h.shape
    gx, gr = h.new_empty((m, n)), h.new_empty((m, n))
    a, b = grad_h.stride()
    c, d = grad_y.stride()
    kernel[lambda meta: (m,)](
        grad_h, grad_y, h, weight, gx, gr, a, b, c, d, n, p, seed, eps, SIZE=max(16, triton.next_power_of_2(n))
    )
    return gx, gr
