def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


class Softer(fx.Transformer):
    def call_function(self, target, args, kwargs):
        if target is torch.tanh:
            return args[0] / (1 + abs(args[0]))
        return super().call_function(target, args, kwargs)


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        softer = Softer(gm).transform()
        kept.append((softer, [shape_of(i) for i in inputs]))
        return softer.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept
