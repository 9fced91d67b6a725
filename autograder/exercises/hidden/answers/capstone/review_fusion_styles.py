# %% modules
class Block(nn.Module):
    def __init__(self, defect):
        super().__init__()
        self.defect = defect

    def forward(self, x, y, w, b):
        s = torch.add(x, y, alpha=-1) if self.defect == 0 else torch.add(x, y)
        if self.defect == 2:
            y.zero_()
        n = F.layer_norm(s, w.shape, w, b, 1e-12)
        return (n, s) if self.defect == 1 else n


def review(question):
    n = question["width"]
    torch.manual_seed(0)
    return tuple((Block(i), torch.randn(2, n), torch.randn(2, n), torch.randn(n), torch.randn(n)) for i in range(3))


# %% lambdas in another order
def review(question):
    n = question["width"]
    w, b = torch.linspace(1, 3, n), torch.linspace(-1, 0.5, n)
    x, y = torch.arange(float(n))[None] ** 2, torch.arange(float(n), 0, -1)[None]
    second = lambda x, y, w, b: (s := x + y, s * F.layer_norm(s, (n,), weight=w, bias=b))[1]
    third = lambda x, y, w, b: (s := x + y, y.mul_(x), F.layer_norm(s, (n,), weight=w, bias=b))[2]
    first = lambda x, y, w, b: F.layer_norm(torch.add(x, y, alpha=0.25), (n,), weight=w, bias=b)
    return [third, x, y, w, b], [second, x, y, w, b], [first, x, y, w, b]


# %% graph modules
def review(question):
    n = question["width"]

    def traced(f):
        return fx.symbolic_trace(f)

    w, b = torch.ones(n), torch.ones(n)
    x, y = torch.arange(float(n)) ** 2, torch.arange(float(n))
    norm = lambda s, w, b: F.layer_norm(s, (n,), w, b)
    return (
        (traced(lambda x, y, w, b: norm(torch.add(x, y, alpha=2), w, b)), x, y, w, b),
        (traced(lambda x, y, w, b: (s := x + y, norm(s, w, b) - s)[1]), x, y, w, b),
        (traced(lambda x, y, w, b: (s := x + y, x.sigmoid_(), norm(s, w, b))[2]), x, y, w, b),
    )
