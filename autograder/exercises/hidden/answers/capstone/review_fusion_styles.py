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


# %% two norms, an assignment and a negative factor
def review(question):
    n = question["width"]
    given = torch.arange(2.0 * n).view(2, n).sin(), torch.ones(2, n).cumsum(1), torch.full((n,), 2.0), torch.zeros(n)

    def minus(x, y, weight, bias):
        return F.layer_norm(torch.add(x, y, alpha=-1.5), (n,), weight, bias)

    def two_norms(x, y, weight, bias):
        total = torch.add(x, y)
        return F.layer_norm(total, (n,), weight, bias) * F.relu(total)

    def assigns(x, y, weight, bias):
        total = y + x
        y.exp_()
        return F.layer_norm(total, (n,), weight, bias)

    return tuple((program, *given) for program in (minus, two_norms, assigns))


# %% made by one function
def program(kind, width):
    def run(x, y, weight, bias):
        total = torch.add(x, y, alpha=2) if kind == "scaled" else x + y
        if kind == "filled":
            y.fill_(0.5)
        normed = F.layer_norm(total, [width], weight, bias)
        return normed * total if kind == "read twice" else normed

    return run


def review(question):
    width = question["width"]
    found = []
    for number, kind in enumerate(("read twice", "filled", "scaled")):
        generator = torch.Generator().manual_seed(number)
        x, y = (torch.randn(5, width, generator=generator) for _ in range(2))
        found.append((program(kind, width), x, y, torch.ones(width), torch.ones(width)))
    return tuple(found)


# %% three dimensions, the sum as a second output
def review(question):
    n = question["width"]
    x, y = torch.linspace(-2, 2, 6 * n).reshape(2, 3, n), torch.linspace(1, 0, 6 * n).reshape(2, 3, n) ** 3
    w, b = torch.rand(n) + 1, torch.rand(n)

    def scaled(x, y, w, b):
        s = torch.add(x, y, alpha=4)
        return F.layer_norm(s, (n,), w, b)

    def both(x, y, w, b):
        s = torch.add(x, y)
        return s, F.layer_norm(s, (n,), w, b)

    def later(x, y, w, b):
        s = torch.add(x, y)
        x.copy_(y)
        return F.layer_norm(s, (n,), w, b)

    return ((scaled, x, y, w, b), (both, x, y, w, b), (later, x, y, w, b))


# %% lists in a tuple, a module for each defect
class Keyword(nn.Module):
    def forward(self, x, y, w, b):
        return F.layer_norm(torch.add(x, y, alpha=0.5), w.shape, w, b, eps=1e-5)


class PreNorm(nn.Module):
    def forward(self, x, y, w, b):
        hidden = x + y
        return hidden * F.layer_norm(hidden, w.shape, weight=w, bias=b)


class Scratch(nn.Module):
    def forward(self, x, y, w, b):
        hidden = x + y
        x.zero_()
        return F.layer_norm(hidden, w.shape, weight=w, bias=b)


def review(question):
    tensors = [torch.randn(1, question["width"]) for _ in range(2)]
    tensors += [torch.randn(question["width"]) for _ in range(2)]
    return tuple([module(), *(t.clone() for t in tensors)] for module in (Keyword, PreNorm, Scratch))
