def add_norm_backward(grad_h, grad_y, h, weight, p=0.0, seed=0, eps=1e-5):
    rows, columns = h.shape
    grad_x, grad_residual = torch.empty_like(h), torch.empty_like(h)
    add_norm_backward_kernel[(rows,)](
        grad_h, grad_y, h, weight, grad_x, grad_residual,
        grad_h.stride(0), grad_h.stride(1), grad_y.stride(0), grad_y.stride(1), columns, p, seed, eps,
        BLOCK=triton.next_power_of_2(columns),
    )
    return grad_x, grad_residual


@triton.jit
def add_norm_backward_kernel(
    grad_h_ptr, grad_y_ptr, h_ptr, weight_ptr, grad_x_ptr, grad_residual_ptr,
    h_row, h_column, y_row, y_column, columns, p, seed, eps, BLOCK: tl.constexpr,
):
    row = tl.program_id(0)
    column = tl.arange(0, BLOCK)
    inside = column < columns
    at = row * columns + column
    grad_h = tl.load(grad_h_ptr + row * h_row + column * h_column, mask=inside, other=0.0)
    grad_y = tl.load(grad_y_ptr + row * y_row + column * y_column, mask=inside, other=0.0)
    h = tl.load(h_ptr + at, mask=inside, other=0.0)
    centred = tl.where(inside, h - tl.sum(h, axis=0) / columns, 0.0)
    root = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + eps)
    normed = centred * root
    g = grad_y * tl.load(weight_ptr + column, mask=inside, other=0.0)
    by_h = grad_h + root * (g - tl.sum(g, axis=0) / columns - normed * tl.sum(g * normed, axis=0) / columns)
    tl.store(grad_residual_ptr + at, by_h, mask=inside)
    tl.store(grad_x_ptr + at, tl.where(tl.rand(seed, at) >= p, by_h / (1 - p), 0.0), mask=inside)
