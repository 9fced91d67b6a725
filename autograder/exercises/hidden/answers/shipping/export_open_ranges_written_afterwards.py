def exporters():
    from torch.utils._sympy.value_ranges import ValueRanges

    auto = {0: Dim.AUTO, 1: Dim.AUTO}

    class Positions(nn.Module):
        def forward(self, x, table):
            return x + table[: x.shape[1]]

    class Pooled(nn.Module):
        def forward(self, x, mask):
            kept = mask.unsqueeze(-1)
            return (x * kept).sum(1) / kept.sum(1)

    class Halves(nn.Module):
        def forward(self, x):
            middle = x.shape[1] // 2
            return x[:, :middle] * x[:, middle:]

    def written(program):
        for node in program.graph.find_nodes(op="placeholder"):
            for dim, most in ((0, 64), (1, 128)):
                size = node.meta["val"].shape[dim]
                if not isinstance(size, int):
                    program.range_constraints[size.node.expr] = ValueRanges(1, most)
        return program

    return {
        "positions": lambda x, table: written(export(Positions(), (x, table), dynamic_shapes=(auto, None))),
        "pooled": lambda x, mask: written(export(Pooled(), (x, mask), dynamic_shapes=(auto, auto))),
        "halves": lambda x: written(export(Halves(), (x,), dynamic_shapes=(auto,))),
    }
