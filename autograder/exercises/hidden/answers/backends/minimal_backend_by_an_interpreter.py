def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


class Machine(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        if target is torch.tanh:
            return args[0] / (args[0].abs() + 1)
        return super().call_function(target, args, kwargs)


def written(gm):
    graph, values = fx.Graph(), {}
    for node in gm.graph.nodes:
        copied = graph.node_copy(node, values.get)
        if node.target is torch.tanh:
            copied.target = F.softsign
        values[node] = copied
    return fx.GraphModule(gm, graph)


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        kept.append((written(gm), [shape_of(i) for i in inputs]))
        return Machine(gm).run

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
