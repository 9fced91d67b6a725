from torch.utils._python_dispatch import _disable_current_modes

aten = torch.ops.aten


def slice_scatter(base, new, dim=0, start=None, end=None, step=1):
    first, last = start or 0, base.shape[dim] if end is None else min(end, base.shape[dim])
    return torch.cat([base.narrow(dim, 0, first), new, base.narrow(dim, last, base.shape[dim] - last)], dim)


TABLE = {
    aten.slice_scatter.default: slice_scatter,
    aten.select_scatter.default: lambda base, new, dim, at: slice_scatter(base, new.unsqueeze(dim), dim, at, at + 1),
    aten.copy.default: lambda old, new, non_blocking=False: new.expand(old.shape),
}


def without_writes(program):
    def run(x):
        with _disable_current_modes():
            own = torch.func.functionalize(lambda given: program(given.clone()))
            made = make_fx(own, decomposition_table=TABLE)(torch.rand(x.shape))
        return made(x)

    return run


def functional():
    return {name: without_writes(program) for name, program in programs().items()}
