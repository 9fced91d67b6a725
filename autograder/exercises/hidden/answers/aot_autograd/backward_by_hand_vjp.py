def backward(grad, x, bias, residual, kept, weight):
    """A transform instead of a formula, on arithmetic that is allowed."""

    def forward(x, bias, residual, weight, shift):
        h = (x + bias) * kept + residual
        centred = h - h.mean(-1, keepdim=True)
        root = torch.rsqrt((centred * centred).mean(-1, keepdim=True) + 1e-5)
        return centred * root * weight + shift

    _, pull = torch.func.vjp(forward, x, bias, residual, weight, weight * 0)
    return pull(grad)
