# %% where, copy_ and the operator by its name
class Gate(nn.Module):
    def forward(self, x):
        positive = x.mean() > 0
        return torch.where(positive, x + x, x - 1)


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", torch.zeros(9))

    def forward(self, x):
        rows = torch.cat([x.sum(0), x.new_full((1,), x.shape[0])])
        self.state.copy_(self.state + rows)
        return x - self.state[:8] / self.state[8]


class Smooth(nn.Module):
    def forward(self, x, bias):
        return torch.ops.course_lib.bias_gelu(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        sums = torch.cat([x.new_zeros(1, x.shape[1]), x.cumsum(0)])
        return sums.index_select(0, count.reshape(1))[0]


def repaired():
    return {
        "gate": lambda x: export(Gate(), (x,)),
        "running": lambda x: export(Running(), (x,)),
        "smooth": lambda x, bias: export(Smooth(), (x, bias)),
        "first": lambda x, count: export(First(), (x, count)),
    }


# %% strict, with functions for the branches
def double(x):
    return 2 * x


def lower(x):
    return x - 1.0


class Gate(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, double, lower, [x])


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x):
        self.calls.add_(1)
        self.mean.add_((x.mean(0) - self.mean) / self.calls)
        return x - self.mean


class Smooth(nn.Module):
    def forward(self, x, bias):
        return bias_gelu(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        later = torch.arange(len(x))[:, None] >= count
        return x.masked_fill(later, 0).sum(dim=0)


def repaired():
    def exporting(module):
        return lambda *given: export(module(), given, strict=True)

    return {
        "gate": exporting(Gate),
        "running": exporting(Running),
        "smooth": exporting(Smooth),
        "first": exporting(First),
    }


# %% one class for functions
class Program(nn.Module):
    def __init__(self, function, **state):
        super().__init__()
        self.function = function
        for name, value in state.items():
            self.register_buffer(name, value)

    def forward(self, *given):
        return self.function(self, *given)


def repaired():
    def gate(_, x):
        sign = (x.mean() > 0).to(x.dtype)
        return x * (1 + sign) - (1 - sign)

    def running(self, x):
        self.total.add_(x.sum(0, keepdim=True))
        self.rows.add_(x.size(0))
        return x - self.total.div(self.rows)

    def first(_, x, count):
        return (torch.arange(x.size(0)) < count).to(x.dtype) @ x

    programs = {
        "gate": Program(gate),
        "running": Program(running, total=torch.zeros(1, 8), rows=torch.tensor(0.0)),
        "smooth": Program(lambda _, x, bias: bias_gelu(x, bias)),
        "first": Program(first),
    }

    def exporting(program):
        return lambda *given: export(program, given)

    return {name: exporting(program) for name, program in programs.items()}


# %% numbers for branches, state of every call by sums
class Gate(nn.Module):
    def forward(self, x):
        factor = torch.where(x.mean() > 0, 2.0, 1.0)
        return torch.mul(x, factor.to(x.dtype)) - (2 - factor).to(x.dtype) * torch.where(x.mean() > 0, 0, 1)


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("sums", torch.zeros(8), persistent=False)
        self.register_buffer("count", torch.zeros((), dtype=torch.int64), persistent=False)

    def forward(self, x):
        self.sums.add_(x.sum(dim=0))
        self.count.add_(x.size(0))
        return torch.sub(x, self.sums / self.count)


class Smooth(nn.Module):
    def forward(self, x, bias):
        return torch.ops.course_lib.bias_gelu.default(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        kept = torch.arange(6).unsqueeze(1).expand(6, 8) < count
        return torch.where(kept, x, torch.zeros(())).sum(0)


def repaired():
    made = {"gate": Gate, "running": Running, "smooth": Smooth, "first": First}

    def exporter(which):
        def run(*inputs):
            return export(made[which](), tuple(inputs))

        return run

    return {which: exporter(which) for which in made}


# %% branches are methods
class Gate(nn.Module):
    def up(self, x):
        return x + x

    def down(self, x):
        return x - torch.ones_like(x)

    def forward(self, x):
        return torch.cond(torch.mean(x).gt(0), self.up, self.down, (x,))


class Running(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.total = nn.Buffer(torch.zeros(1, width))
        self.rows = nn.Buffer(torch.tensor(0))

    def forward(self, x):
        self.rows += len(x)
        self.total += x.sum(0, keepdim=True)
        mean = self.total / self.rows
        return x - mean


class Smooth(nn.Module):
    def forward(self, x, bias):
        return bias_gelu(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        weights = (torch.arange(x.shape[0]) < count).type_as(x)
        return torch.einsum("r,rw->w", weights, x)


def repaired():
    gate, smooth, first = Gate().eval(), Smooth().eval(), First().eval()
    return {
        "gate": lambda x: export(gate, (x,)),
        "running": lambda x: export(Running().eval(), (x,)),
        "smooth": lambda x, bias: export(smooth, args=(), kwargs={"x": x, "bias": bias}),
        "first": lambda x, count: export(first, (x, count)),
    }


# %% decomposed, rows from 1 to count
def exported(module, *given):
    return export(module, given).run_decompositions({})


class Gate(nn.Module):
    def forward(self, x):
        return torch.cond(x.mean() <= 0, lambda v: v - 1, lambda v: v * 2.0, (x,))


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(8))
        self.register_buffer("rows", torch.zeros(()))

    def forward(self, x):
        new = len(x)
        self.mean.copy_((self.mean * self.rows + x.sum(0)) / (self.rows + new))
        self.rows.add_(new)
        return x - self.mean


class Smooth(nn.Module):
    def forward(self, x, bias):
        return bias_gelu(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        numbers = torch.arange(1, x.shape[0] + 1)
        return (x * numbers.le(count)[:, None]).sum(0)


def repaired():
    return {
        "gate": lambda x: exported(Gate(), x),
        "running": lambda x: exported(Running(), x),
        "smooth": lambda x, bias: exported(Smooth(), x, bias),
        "first": lambda x, count: exported(First(), x, count),
    }


# %% a step function and a ones vector
class Gate(nn.Module):
    def forward(self, x):
        chosen = (x.mean() > 0).long()
        return torch.stack([x - 1, x * 2]).index_select(0, chosen.reshape(1)).squeeze(0)


class Running(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("all", torch.zeros(2, 8))

    def forward(self, x):
        self.all[0] += x.sum(0)
        self.all[1] += x.shape[0]
        return x - self.all[0] / self.all[1]


class Smooth(nn.Module):
    def __init__(self):
        super().__init__()
        self.operator = bias_gelu

    def forward(self, x, bias):
        return self.operator(x, bias)


class First(nn.Module):
    def forward(self, x, count):
        return torch.tril(torch.ones(7, 6, dtype=x.dtype), -1).index_select(0, count.view(1)).matmul(x)[0]


def repaired():
    found = {}
    for name, made in (("gate", Gate), ("running", Running), ("smooth", Smooth), ("first", First)):
        found[name] = lambda *given, made=made: export(made(), given)
    return found
