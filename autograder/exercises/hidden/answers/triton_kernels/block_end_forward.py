def add_norm(x, bias, residual, weight, shift, p=0.0, seed=0, eps=1e-5):
    """Return h and y for matrices x and residual; launcher and kernel together, about 30 lines."""
    rows, columns = x.shape
    h = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    y = torch.empty((rows, columns), dtype=x.dtype, device=x.device)
    strides = x.stride(0), x.stride(1), residual.stride(0), residual.stride(1)
    block = triton.next_power_of_2(columns)
    add_norm_kernel[(rows,)](x, bias, residual, weight, shift, h, y, strides, columns, p, seed, eps, BLOCK=block)
    return h, y


@triton.jit
def add_norm_kernel(
    x_ptr, bias_ptr, res_ptr, weight_ptr, shift_ptr, h_ptr, y_ptr, strides, columns, p, seed, eps, BLOCK: tl.constexpr
):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    inside = column < columns
    at = row * columns + column
    x = tl.load(x_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0)
    residual = tl.load(res_ptr + row * strides[2] + column * strides[3], mask=inside, other=0.0)
    branch = (x + tl.load(bias_ptr + column, mask=inside, other=0.0)) / (1 - p)
    h = residual + tl.where(tl.rand(seed, at) >= p, branch, 0.0)
    tl.store(h_ptr + at, h, mask=inside)
    centred = tl.where(inside, h - tl.sum(h, axis=0) / columns, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    weight = tl.load(weight_ptr + column, mask=inside, other=0.0)
    shift = tl.load(shift_ptr + column, mask=inside, other=0.0)
    tl.store(y_ptr + at, centred * rstd * weight + shift, mask=inside)
