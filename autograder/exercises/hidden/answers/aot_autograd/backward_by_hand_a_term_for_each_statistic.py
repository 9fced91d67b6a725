def backward(grad, x, bias, residual, kept, weight):
    n = x.shape[-1]
    h = (x + bias) * kept + residual
    mean = h.sum(-1, keepdim=True) / n
    centred = h - mean
    var = (centred * centred).sum(-1, keepdim=True) / n
    std = torch.sqrt(var + 1e-5)
    normed = centred / std
    grad_shift = grad.sum(0)
    grad_weight = (grad * normed).sum(0)
    g = grad * weight
    grad_var = (g * centred).sum(-1, keepdim=True) * -0.5 * (var + 1e-5) ** -1.5
    grad_mean = (-g / std).sum(-1, keepdim=True) + grad_var * (-2 * centred).sum(-1, keepdim=True) / n
    by_h = g / std + grad_var * 2 * centred / n + grad_mean / n
    by_x = by_h * kept
    return by_x, by_x.sum(0), by_h, grad_weight, grad_shift
