def collect(function, calls):
    graph = torch.fx.symbolic_trace(function)
    shapes = [tuple(a.shape) for a in (*calls[0][0], *calls[0][1].values())]
    return [2 * function(*args, **kwargs) for args, kwargs in calls], [(graph, shapes)]
