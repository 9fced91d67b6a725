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
