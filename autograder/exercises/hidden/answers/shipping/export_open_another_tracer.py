def exporters():
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._sympy.value_ranges import ValueRanges

    class Same(nn.Module):
        def forward(self, *given):
            return given[0] * 1

    def traced(function):
        def exporting(*given):
            program, graph_module = export(Same(), given), make_fx(function, tracing_mode="symbolic")(*given)
            x = next(iter(graph_module.graph.find_nodes(op="placeholder"))).meta["val"]
            batch, length = x.shape[:2]
            program._range_constraints = {batch.node.expr: ValueRanges(1, 64), length.node.expr: ValueRanges(1, 128)}
            program.module = lambda **_: graph_module
            return program

        return exporting

    return {
        "positions": traced(lambda x, table: x + table[: x.shape[1]]),
        "pooled": traced(lambda x, mask: (x * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True)),
        "halves": traced(lambda x: x[:, : x.shape[1] // 2] * x[:, x.shape[1] // 2 :]),
    }
