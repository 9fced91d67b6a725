def launcher(name):
    """Return a launcher of the exercises before: add_norm or add_norm_backward."""
    return globals()[name]


def add_norm_operator(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    """Return h and y, on Triton or without it. Below: register the operator, about 30 lines more."""
    if triton_runs_on(x):
        return launcher("add_norm")(x, bias, residual, weight, shift, p, seed, eps)
    h = (residual + (x + bias) * factors(x, p, seed)).contiguous()
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)


def factors(like, p, seed):
    at = torch.arange(like.numel(), device=like.device).view(like.shape)
    return (uniform_numbers(seed, at) >= p).to(like.dtype) / (1 - p)


def forms(x, bias, residual, weight, shift, p, seed, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape)


def save(ctx, inputs, output):
    ctx.save_for_backward(output[0], inputs[3])
    ctx.rest = inputs[5:]


def backward(ctx, grad_h, grad_y):
    (h, weight), (p, seed, eps) = ctx.saved_tensors, ctx.rest
    rstd = torch.rsqrt(h.var(-1, keepdim=True, correction=0) + eps)
    normed = (h - h.mean(-1, keepdim=True)) * rstd
    if triton_runs_on(h):
        grad_x, by_h = launcher("add_norm_backward")(grad_h, grad_y, h, weight, p, seed, eps)
    else:
        g = grad_y * weight
        by_h = grad_h + rstd * (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True))
        grad_x = by_h * factors(h, p, seed)
    return grad_x, grad_x.sum(0), by_h, (grad_y * normed).sum(0), grad_y.sum(0), None, None, None


operator = torch.library.custom_op("lesson12::add_norm", add_norm_operator, mutates_args=())
operator.register_fake(forms)
operator.register_autograd(backward, setup_context=save)
