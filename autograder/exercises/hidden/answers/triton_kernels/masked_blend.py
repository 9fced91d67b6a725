def blend(x, y, t):
    """Return x + t * (y - x) for two vectors of any strides; launcher and kernel together, about 12 lines."""
    n = x.numel()
    out = torch.empty(n, dtype=x.dtype, device=x.device)
    blend_kernel[(triton.cdiv(n, 256),)](x, y, out, t, n, x.stride(0), y.stride(0), BLOCK=256)
    return out


@triton.jit
def blend_kernel(x_ptr, y_ptr, out_ptr, t, n, x_stride, y_stride, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    x = tl.load(x_ptr + at * x_stride, mask=inside)
    y = tl.load(y_ptr + at * y_stride, mask=inside)
    tl.store(out_ptr + at, x + t * (y - x), mask=inside)
