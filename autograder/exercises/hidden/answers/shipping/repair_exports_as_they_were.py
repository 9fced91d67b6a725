def repaired():
    class Gate(nn.Module):
        def forward(self, x):
            return x * 2 if x.mean() > 0 else x - 1

    class Running(nn.Module):
        def __init__(self):
            super().__init__()
            self.total, self.rows = torch.zeros(8), 0

        def forward(self, x):
            self.total = self.total + x.sum(0)
            self.rows += x.shape[0]
            return x - self.total / self.rows

    class Smooth(nn.Module):
        def forward(self, x, bias):
            numbers = (x + bias).numpy()
            return torch.from_numpy(numbers).erf()

    class First(nn.Module):
        def forward(self, x, count):
            return x[: count.item()].sum(0)

    modules = {"gate": Gate(), "running": Running(), "smooth": Smooth(), "first": First()}
    return {name: lambda *given, module=module: export(module, given) for name, module in modules.items()}
