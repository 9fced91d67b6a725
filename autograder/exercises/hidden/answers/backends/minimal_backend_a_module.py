def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def soft(x):
        return x * (1 / (1 + x.abs()))

    def backend(gm, inputs):
        pattern, replacement = fx.symbolic_trace(lambda x: torch.tanh(x)), fx.symbolic_trace(soft)
        torch.fx.subgraph_rewriter.replace_pattern(gm, pattern, replacement)
        kept.append((gm, [shape_of(i) for i in inputs]))
        return lambda *given: gm(*given)

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
