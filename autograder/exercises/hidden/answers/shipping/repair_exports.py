def repaired() -> dict:
    """Return {"gate": ..., "running": ..., "smooth": ..., "first": ...}; about 24 lines."""

    class Gate(nn.Module):
        def forward(self, x):
            return torch.cond(x.mean() > 0, lambda x: x * 2, lambda x: x - 1, (x,))

    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("total", torch.zeros(8))
            self.register_buffer("rows", torch.zeros(()))

        def forward(self, x):
            self.total += x.sum(0)
            self.rows += x.shape[0]
            return x - self.total / self.rows

    class Smooth(nn.Module):
        def forward(self, x, bias):
            return bias_gelu(x, bias)

    class First(nn.Module):
        def forward(self, x, count):
            return ((torch.arange(x.shape[0]) < count).unsqueeze(-1) * x).sum(0)

    modules = {"gate": Gate(), "running": Running(), "smooth": Smooth(), "first": First()}
    return {name: lambda *given, module=module: export(module, given) for name, module in modules.items()}
