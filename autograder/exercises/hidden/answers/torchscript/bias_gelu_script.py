def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """GELU of x + bias; write bias_gelu_backward(grad, x, bias) below it. Together about 12 lines."""
    h = x + bias
    return 0.5 * h * (1 + torch.tanh(0.79788456 * (h + 0.044715 * h * h * h)))


def bias_gelu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    h = x + bias
    t = torch.tanh(0.79788456 * (h + 0.044715 * h * h * h))
    inner = 0.79788456 * (1 + 3 * 0.044715 * h * h)
    by_x = (0.5 * (1 + t) + 0.5 * h * (1 - t * t) * inner) * grad
    return by_x, by_x.sum_to_size(bias.shape)
