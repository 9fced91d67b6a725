@torch.library.custom_op("lesson12::add_norm", mutates_args=())
def add_norm_operator(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    if triton_runs_on(x):
        return add_norm(x, bias, residual, weight, shift, p, seed, eps)
    h = residual + (x + bias) * factors(x, p, seed)
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)


def factors(like, p, seed):
    at = torch.arange(like.numel(), device=like.device).view(like.shape)
    return (uniform_numbers(seed, at) >= p).to(like.dtype) / (1 - p)


@add_norm_operator.register_fake
def _(x, bias, residual, weight, shift, p, seed, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape)
