def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target == torch.tanh:
                node.target = F.softsign
        gm.recompile()
        kept.append([gm, [shape_of(i) for i in inputs]])
        return gm.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
