def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        new, values = fx.Graph(), {}
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target is torch.tanh:
                x = values[node.args[0]]
                below = new.call_function(torch.add, (new.call_method("abs", (x,)), 1))
                values[node] = new.call_function(torch.div, (x, below))
            else:
                values[node] = new.node_copy(node, lambda n: values[n])
        module = fx.GraphModule(gm, new)
        kept.append((module, tuple(shape_of(i) for i in inputs)))
        return module

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
