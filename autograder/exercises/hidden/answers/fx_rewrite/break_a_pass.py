def counterexample(question: dict) -> tuple:
    """Return a program that the pass of the question changes, and inputs on which one sees it."""
    x = -torch.arange(1.0, 5.0)
    if question["pass"] == "drop_dead_code":
        return writing(question["overlooks"]), x
    if question["pass"] == "share_equal":
        return PROGRAMS[question["overlooks"]], x, x * x
    return WithFactor(question["forgets"], question["above"] + 1), x


def writing(method):
    return lambda x: (h := x * 1, getattr(h, method)())[0]


PROGRAMS = {
    "keywords": lambda x, y: torch.add(x, y, alpha=2) - torch.add(x, y, alpha=3),
    "numbers": lambda x, y: torch.mul(x, 2) - torch.mul(x, 3),
    "order": lambda x, y: (x - y) * (y - x),
    "writes": lambda x, y: torch.exp(x) - (x.add_(1), torch.exp(x))[1],
}


class WithFactor(nn.Module):
    def __init__(self, forgets, factor):
        super().__init__()
        self.linear, self.forgets, self.factor = nn.Linear(4, 4), forgets, factor

    def forward(self, x):
        scaled = (h := self.linear(x)) * self.factor
        other = {"other calls": self.linear, "other readers": lambda _: h}.get(self.forgets)
        return scaled if other is None else scaled - other(x + 1)
