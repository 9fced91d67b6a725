def formula(x, bias, residual, weight, shift, p, seed, eps):
    at = torch.arange(x.numel(), device=x.device).reshape(x.shape)
    h = residual + torch.where(uniform_numbers(seed, at) >= p, (x + bias) / (1 - p), 0.0)
    h = h.contiguous()
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)


@torch.library.custom_op("lesson12::add_norm", mutates_args=())
def add_norm_operator(
    x: Tensor, bias: Tensor, residual: Tensor, weight: Tensor, shift: Tensor, p: float, seed: int, eps: float
) -> tuple[Tensor, Tensor]:
    run = add_norm if triton_runs_on(x) else formula
    return run(x, bias, residual, weight, shift, p, seed, eps)


@add_norm_operator.register_fake
def forms(x, *others):
    return x.new_empty(x.shape), x.new_empty(x.shape)


def keep(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:5])
    ctx.others = inputs[5:]


def gradients(ctx, *grads):
    leaves = [tensor.detach().requires_grad_() for tensor in ctx.saved_tensors]
    with torch.enable_grad():
        outputs = formula(*leaves, *ctx.others)
    return (*torch.autograd.grad(outputs, leaves, grads), None, None, None)


torch.library.register_autograd("lesson12::add_norm", gradients, setup_context=keep)
