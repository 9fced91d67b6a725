TENSORS = "Tensor x, Tensor bias, Tensor residual, Tensor weight, Tensor shift"
SCHEMA = f"({TENSORS}, float p, int seed, float eps) -> (Tensor, Tensor)"
torch.library.define("lesson12::add_norm", SCHEMA)


def factors(like, p, seed):
    numbers = uniform_numbers(seed, torch.arange(like.numel()).view_as(like))
    return torch.where(numbers < p, 0.0, 1 / (1 - p)).to(like.dtype)


@torch.library.impl("lesson12::add_norm", "CPU")
def on_cpu(x, bias, residual, weight, shift, p, seed, eps):
    h = torch.addcmul(residual, x + bias, factors(x, p, seed)).contiguous()
    return h, torch.native_layer_norm(h, [h.shape[1]], weight, shift, eps)[0]


@torch.library.impl("lesson12::add_norm", "CUDA")
def on_cuda(x, bias, residual, weight, shift, p, seed, eps):
    return add_norm(x, bias, residual, weight, shift, p, seed, eps)


@torch.library.register_fake("lesson12::add_norm")
def forms(x, bias, residual, weight, shift, p, seed, eps):
    return tuple(torch.empty(tuple(x.shape), dtype=x.dtype, device=x.device) for _ in range(2))


def save(ctx, inputs, output):
    ctx.save_for_backward(output[0], inputs[3])
    ctx.p, ctx.seed, ctx.eps = inputs[5:]


def backward(ctx, grad_h, grad_y):
    h, weight = ctx.saved_tensors
    variance, mean = torch.var_mean(h, -1, correction=0, keepdim=True)
    normed = (h - mean) / (variance + ctx.eps).sqrt()
    g = grad_y * weight
    inner = g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)
    total = grad_h + inner / (variance + ctx.eps).sqrt()
    grad_x = total * factors(h, ctx.p, ctx.seed)
    return grad_x, grad_x.sum(0), total, (grad_y * normed).sum(0), grad_y.sum(0), None, None, None


torch.library.register_autograd("lesson12::add_norm", backward, setup_context=save)


def add_norm_operator(*args):
    return torch.ops.lesson12.add_norm(*args)
