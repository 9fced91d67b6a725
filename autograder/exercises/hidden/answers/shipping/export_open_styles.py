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


# %% a matrix product for the mean, and halves by reshape
class Positions(nn.Module):
    def forward(self, x, table):
        rows = table.narrow(0, 0, x.size(1))
        return torch.add(x, rows.unsqueeze(0).expand_as(x))


class Pooled(nn.Module):
    def forward(self, x, mask):
        kept = mask.to(x.dtype).unsqueeze(1)
        return torch.bmm(kept, x).squeeze(1) / kept.sum(-1)


class Halves(nn.Module):
    def forward(self, x):
        both = x.reshape(x.shape[0], 2, x.shape[1] // 2, x.shape[2])
        return both[:, 0] * both[:, 1]


def exporters():
    batch, length, half = Dim("batch", min=1, max=64), Dim("length", min=2, max=128), Dim("half", min=1, max=64)

    def positions(x, table):
        return export(Positions(), (x, table), dynamic_shapes=[[batch, length, None], [None, None]])

    def pooled(x, mask):
        return export(Pooled(), (x, mask), dynamic_shapes=[[batch, length, None], [batch, length]])

    def halves(x):
        return export(Halves(), (x,), dynamic_shapes=[[batch, 2 * half, None]])

    return {"positions": positions, "pooled": pooled, "halves": halves}


# %% with keyword inputs and functools
import functools


class Positions(nn.Module):
    def forward(self, x, table):
        return x + F.embedding(torch.arange(x.shape[1]).expand(x.shape[:2]), table)


class Pooled(nn.Module):
    def forward(self, x, mask):
        dropped = torch.logical_not(mask)[:, :, None]
        sums = torch.masked_fill(x, dropped, 0).sum(1)
        return torch.div(sums, mask.long().sum(1, keepdim=True))


class Halves(nn.Module):
    def forward(self, x):
        middle = x.shape[1] // 2
        return torch.narrow(x, 1, 0, middle) * torch.narrow(x, 1, middle, middle)


BATCH, LENGTH = Dim("batch", max=64), Dim("length", min=2, max=128)
OPEN = {0: BATCH, 1: LENGTH}


def exported(module, shapes, *inputs):
    return export(module, inputs, dynamic_shapes=shapes)


def exporters():
    return {
        "positions": functools.partial(exported, Positions(), (OPEN, {})),
        "pooled": functools.partial(exported, Pooled(), (OPEN, OPEN)),
        "halves": functools.partial(exported, Halves(), ({0: BATCH, 1: 2 * Dim("half", max=64)},)),
    }


# %% decomposed, the table as it comes
class Positions(nn.Module):
    def forward(self, x, table):
        length = x.shape[1]
        return x + table[:length][None]


class Pooled(nn.Module):
    def forward(self, x, mask):
        kept = mask.to(x.dtype)
        return (kept[..., None] * x / kept.sum(1)[:, None, None]).sum(1)


class Halves(nn.Module):
    def forward(self, x):
        return torch.prod(torch.stack(torch.tensor_split(x, 2, dim=1)), dim=0)


def exporters():
    batch, length = Dim("batch", min=1, max=64), Dim("length", min=2, max=128)

    def exporting(module, *shapes):
        def run(*inputs):
            return export(module, inputs, dynamic_shapes=shapes).run_decompositions()

        return run

    sizes = {0: batch, 1: length}
    return {
        "positions": exporting(Positions(), sizes, None),
        "pooled": exporting(Pooled(), sizes, sizes),
        "halves": exporting(Halves(), {0: batch, 1: 2 * Dim("half", max=64)}),
    }


# %% sizes as attributes of a table of programs
PROGRAMS = {}


def program(*shapes):
    def keep(function):
        class Program(nn.Module):
            def forward(self, *inputs):
                return function(*inputs)

        def exporting(*inputs):
            return export(Program(), inputs, dynamic_shapes=(tuple(shapes),))

        PROGRAMS[function.__name__] = exporting
        return function

    return keep


B, N, H = Dim("B", min=1, max=64), Dim("N", min=2, max=128), Dim("H", min=1, max=64)


@program({0: B, 1: N}, None)
def positions(x, table):
    return x + torch.index_select(table, 0, torch.arange(x.shape[1]))


@program({0: B, 1: N}, {0: B, 1: N})
def pooled(x, mask):
    return torch.where(mask.unsqueeze(2), x, torch.zeros_like(x)).sum(-2) / mask.sum(1).unsqueeze(1)


@program({0: B, 1: 2 * H})
def halves(x):
    start, end = x.unflatten(1, (2, x.shape[1] // 2)).unbind(1)
    return start * end


def exporters():
    return dict(PROGRAMS)
