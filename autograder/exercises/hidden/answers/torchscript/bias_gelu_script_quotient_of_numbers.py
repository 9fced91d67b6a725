def bias_gelu(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.gelu(x + bias, approximate="tanh")


def bias_gelu_backward(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    flat = (x + bias).reshape(-1)
    slopes: list[float] = []
    for i in range(flat.numel()):
        h = float(flat[i])
        values: list[float] = []
        for sign in [1.0, -1.0]:
            a = h + sign * 0.00001
            u = 2.0 * 0.7978845608028654 * (a + 0.044715 * a * a * a)
            if u > 60.0:
                u = 60.0
            if u < -60.0:
                u = -60.0
            s = u / 1024.0
            e = 1.0 + s * (1.0 + s / 2.0 * (1.0 + s / 3.0 * (1.0 + s / 4.0 * (1.0 + s / 5.0))))
            for _ in range(10):
                e = e * e
            values.append(a * (1.0 - 1.0 / (e + 1.0)))
        slopes.append((values[0] - values[1]) / 0.00002)
    by_x = torch.tensor(slopes).reshape(x.shape) * grad
    return by_x, by_x.sum_to_size(bias.shape)
