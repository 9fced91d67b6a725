import triton
import triton.language as tl


def end_forward(x, bias, residual, weight, shift, p: float, eps: float, seed):
    columns = x.shape[-1]
    rows = x.numel() // columns
    y = torch.empty_like(x)
    grid, block = (triton.cdiv(rows, 16),), triton.next_power_of_2(columns)
    end_kernel[grid](x, bias, residual, weight, shift, seed, y, rows, columns, p, eps, ROWS=16, BLOCK=block)
    return y


def end_backward(grad_y, x, bias, residual, weight, p: float, eps: float, seed):
    columns = x.shape[-1]
    rows = x.numel() // columns
    by_x, by_residual = torch.empty_like(x), torch.empty_like(x)
    by_bias, by_weight, by_shift = torch.empty_like(bias), torch.empty_like(bias), torch.empty_like(bias)
    given, made = (grad_y, x, bias, residual, weight, seed), (by_x, by_bias, by_residual, by_weight, by_shift)
    block = triton.next_power_of_2(columns)
    end_backward_kernel[(1,)](given, made, rows, columns, p, eps, ROWS=16, BLOCK=block)
    return by_x, by_bias, by_residual, by_weight, by_shift


@triton.jit
def summed(x_ptr, bias_ptr, residual_ptr, seed_ptr, at, column, inside, columns, p):
    bias = tl.load(bias_ptr + column, mask=column < columns, other=0.0)
    branch = tl.load(x_ptr + at, mask=inside, other=0.0) + bias
    keep = tl.rand(tl.load(seed_ptr), at) >= p
    return tl.load(residual_ptr + at, mask=inside, other=0.0) + tl.where(keep, branch / (1 - p), 0.0), keep


@triton.jit
def normalised(h, inside, columns, eps):
    centred = tl.where(inside, h - tl.sum(h, axis=1)[:, None] / columns, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=1)[:, None] / columns + eps)
    return centred * rstd, rstd


@triton.jit
def end_kernel(
    x_ptr,
    bias_ptr,
    residual_ptr,
    weight_ptr,
    shift_ptr,
    seed_ptr,
    y_ptr,
    rows,
    columns,
    p,
    eps,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    at = row * columns + column
    inside = (row < rows) & (column < columns)
    h, _ = summed(x_ptr, bias_ptr, residual_ptr, seed_ptr, at, column, inside, columns, p)
    normed, _ = normalised(tl.where(inside, h, 0.0), inside, columns, eps)
    weight = tl.load(weight_ptr + column, mask=column < columns, other=0.0)
    shift = tl.load(shift_ptr + column, mask=column < columns, other=0.0)
    tl.store(y_ptr + at, normed * weight + shift, mask=inside)


@triton.jit
def end_backward_kernel(given, made, rows, columns, p, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    grad_ptr, x_ptr, bias_ptr, residual_ptr, weight_ptr, seed_ptr = given
    by_x_ptr, by_bias_ptr, by_residual_ptr, by_weight_ptr, by_shift_ptr = made
    column = tl.arange(0, BLOCK)[None, :]
    weight = tl.load(weight_ptr + column, mask=column < columns, other=0.0)
    by_bias = tl.zeros((1, BLOCK), dtype=tl.float32)
    by_weight = tl.zeros((1, BLOCK), dtype=tl.float32)
    by_shift = tl.zeros((1, BLOCK), dtype=tl.float32)
    for first in range(0, rows, ROWS):
        row = first + tl.arange(0, ROWS)[:, None]
        at = row * columns + column
        inside = (row < rows) & (column < columns)
        h, keep = summed(x_ptr, bias_ptr, residual_ptr, seed_ptr, at, column, inside, columns, p)
        normed, rstd = normalised(tl.where(inside, h, 0.0), inside, columns, eps)
        grad = tl.load(grad_ptr + at, mask=inside, other=0.0)
        g = grad * weight
        along = tl.sum(g * normed, axis=1)[:, None] / columns
        by_h = rstd * (g - tl.sum(g, axis=1)[:, None] / columns - normed * along)
        by_x = tl.where(keep, by_h / (1 - p), 0.0)
        tl.store(by_residual_ptr + at, by_h, mask=inside)
        tl.store(by_x_ptr + at, by_x, mask=inside)
        by_bias += tl.sum(tl.where(inside, by_x, 0.0), axis=0)[None, :]
        by_weight += tl.sum(grad * normed, axis=0)[None, :]
        by_shift += tl.sum(grad, axis=0)[None, :]
    tl.store(by_bias_ptr + column, by_bias, mask=column < columns)
    tl.store(by_weight_ptr + column, by_weight, mask=column < columns)
    tl.store(by_shift_ptr + column, by_shift, mask=column < columns)


block_end = kernel_operator("step::block_end", end_forward, end_backward)


def optimise(gm):
    kinds = {name: type(module) for name, module in gm.named_modules()}
    for norm in [node for node in gm.graph.nodes if kinds.get(node.target) is nn.LayerNorm]:
        total = norm.args[0]
        dropped = [
            t for t in total.args if kinds.get(t.target) is nn.Dropout and kinds.get(t.args[0].target) is nn.Linear
        ]
        if total.target is not operator.add or len(total.users) > 1 or not dropped:
            continue
        drop, linear = dropped[0], dropped[0].args[0]
        (residual,) = [term for term in total.args if term is not drop]
        with gm.graph.inserting_before(norm):
            weight, bias, scale, shift = (
                gm.graph.get_attr(f"{owner.target}.{name}") for owner in (linear, norm) for name in ("weight", "bias")
            )
            product = gm.graph.call_function(F.linear, (linear.args[0], weight))
            rest = gm.get_submodule(drop.target).p, gm.get_submodule(norm.target).eps
            end = gm.graph.call_function(block_end, (product, bias, residual, scale, shift, *rest))
        norm.replace_all_uses_with(end)
    gm.graph.eliminate_dead_code()
    gm.recompile()
    return gm
