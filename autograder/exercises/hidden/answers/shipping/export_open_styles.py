# %% one module with a function
class Program(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *inputs):
        return self.function(*inputs)


def exporters():
    def exporting(function, *shapes):
        return lambda *inputs: export(Program(function), inputs, dynamic_shapes=(shapes,))

    def mean(x, mask):
        weights = mask.to(x.dtype) / mask.sum(1, keepdim=True)
        return torch.einsum("bl,blw->bw", weights, x)

    batch = Dim("batch", min=1, max=64)
    both = {0: batch, 1: Dim("length", min=1, max=128)}
    even = {0: batch, 1: 2 * Dim("half", max=64)}
    return {
        "positions": exporting(lambda x, table: x + table.narrow(0, 0, x.shape[1]), both, {}),
        "pooled": exporting(mean, both, both),
        "halves": exporting(lambda x: x.unflatten(1, (2, -1)).prod(1), even),
    }


# %% examples of its own, shapes by name
class Positions(nn.Module):
    def forward(self, x, table):
        return x + table[torch.arange(x.shape[1])]


class Pooled(nn.Module):
    def forward(self, x, mask):
        return torch.where(mask[..., None], x, 0.0).sum(dim=1) / mask.count_nonzero(1)[:, None]


class Halves(nn.Module):
    def forward(self, x):
        one, two = torch.chunk(x, 2, dim=1)
        return one * two


def exporters():
    batch = Dim("batch", max=64)
    length = Dim("length", min=2, max=128)
    shapes = {"x": {0: batch, 1: length}}

    def positions(x, table):
        return export(Positions(), args=(x.new_zeros(5, 6, 8), table), dynamic_shapes=shapes | {"table": None})

    def pooled(x, mask):
        return export(Pooled(), (x, mask), dynamic_shapes=shapes | {"mask": {0: batch, 1: length}})

    def halves(x):
        return export(Halves(), (x,), dynamic_shapes={"x": {0: batch, 1: 2 * Dim("half", min=1, max=64)}})

    return {f.__name__: f for f in (positions, pooled, halves)}


# %% strict, with ranges as written
def exporters():
    class One(nn.Module):
        def forward(self, x, table):
            rows = torch.arange(x.size(1), device=x.device)
            return x + torch.nn.functional.embedding(rows, table)

    class Two(nn.Module):
        def forward(self, x, mask):
            total = x.masked_fill(~mask[:, :, None], 0).sum(1)
            return total / mask.sum(-1)[:, None]

    class Three(nn.Module):
        def forward(self, x):
            n = x.size(1) // 2
            a, b = x.split([n, n], dim=1)
            return a.mul(b)

    b, n = Dim("b", min=0, max=64), Dim("n", min=2, max=128)
    return {
        "positions": lambda *given: export(One(), given, dynamic_shapes=({0: b, 1: n}, {}), strict=True),
        "pooled": lambda *given: export(Two(), given, dynamic_shapes=({0: b, 1: n}, {0: b, 1: n}), strict=True),
        "halves": lambda *given: export(Three(), given, dynamic_shapes=({0: b, 1: 2 * Dim("h", max=64)},), strict=True),
    }
