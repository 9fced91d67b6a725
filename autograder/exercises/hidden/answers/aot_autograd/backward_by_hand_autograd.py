def backward(grad, x, bias, residual, kept, weight):
    """Autograd instead of a formula."""
    leaves = [t.detach().clone().requires_grad_() for t in (x, bias, residual, weight, torch.zeros_like(weight))]
    with torch.enable_grad():
        h = (leaves[0] + leaves[1]) * kept + leaves[2]
        y = torch.nn.functional.layer_norm(h, h.shape[-1:], leaves[3], leaves[4])
    return torch.autograd.grad(y, leaves, grad)
