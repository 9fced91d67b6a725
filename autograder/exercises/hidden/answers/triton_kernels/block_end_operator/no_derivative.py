def launcher(name):
    """Return a launcher of the exercises before: add_norm or add_norm_backward."""
    return globals()[name]


def add_norm_operator(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    if triton_runs_on(x):
        return launcher("add_norm")(x, bias, residual, weight, shift, p, seed, eps)
    h = (residual + (x + bias) * factors(x, p, seed)).contiguous()
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)


def factors(like, p, seed):
    at = torch.arange(like.numel(), device=like.device).view(like.shape)
    return (uniform_numbers(seed, at) >= p).to(like.dtype) / (1 - p)


def forms(x, bias, residual, weight, shift, p, seed, eps):
    return x.new_empty(x.shape), x.new_empty(x.shape)


operator = torch.library.custom_op("lesson12::add_norm", add_norm_operator, mutates_args=())
operator.register_fake(forms)
