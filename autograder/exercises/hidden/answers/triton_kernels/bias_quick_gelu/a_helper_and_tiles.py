FACTOR = tl.constexpr(1.702)


@triton.jit
def quick_gelu(z):
    return z * tl.sigmoid(FACTOR * z)


@triton.jit
def tile_kernel(x, b, y, rows, columns, x0, x1, b0, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    is_row, is_column = row < rows, column < columns
    mask = is_row[:, None] & is_column[None, :]
    bias = tl.load(b + column * b0, mask=is_column, other=0.0)
    tile = tl.load(x + row[:, None] * x0 + column[None, :] * x1, mask=mask, other=0.0)
    z = tile.to(tl.float32) + bias.to(tl.float32)[None, :]
    tl.store(y + row[:, None] * columns + column[None, :], quick_gelu(z).to(y.dtype.element_ty), mask=mask)


def bias_quick_gelu(x, bias):
    rows, columns = x.shape
    y = torch.empty((rows, columns), dtype=x.dtype)
    grid = (triton.cdiv(rows, 16), triton.cdiv(columns, 32))
    tile_kernel[grid](x, bias, y, rows, columns, x.stride(0), x.stride(1), bias.stride(0), ROWS=16, COLUMNS=32)
    return y
