def approximate(function, calls):
    graphs = []

    def backend(gm, inputs):
        def run(*given):
            fx.replace_pattern(gm, lambda x: torch.tanh(x), lambda x: x / (1 + torch.abs(x)))
            graphs.append((gm, [tuple(value.shape) for value in given if isinstance(value, torch.Tensor)]))
            return gm(*given)

        return run

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
