def approximate(function, calls):
    traced = fx.symbolic_trace(function)
    fx.replace_pattern(traced, lambda x: torch.tanh(x), lambda x: x / (1 + torch.abs(x)))
    shapes = [tuple(value.shape) for value in (*calls[0][0], *calls[0][1].values())]
    return [traced(*args, **kwargs) for args, kwargs in calls], [(traced, shapes)]
