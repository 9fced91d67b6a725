def factors(like, p, seed):
    at = torch.arange(like.numel()).view(like.shape)
    return (uniform_numbers(seed, at) >= p).to(like.dtype) / (1 - p)


def add_norm_operator(x, bias, residual, weight, shift, p, seed, eps):
    h = residual + (x + bias) * factors(x, p, seed)
    return h, F.layer_norm(h, h.shape[-1:], weight, shift, eps)
