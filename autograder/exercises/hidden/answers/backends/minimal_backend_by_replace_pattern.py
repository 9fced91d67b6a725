def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        fx.replace_pattern(gm, lambda x: torch.tanh(x), lambda x: x / (1 + torch.abs(x)))
        kept.append((gm, list(map(shape_of, inputs))))
        return gm

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
