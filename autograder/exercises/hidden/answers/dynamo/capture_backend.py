def collect(function, calls: list) -> tuple[list, list]:
    """Keep every graph that Dynamo makes of a function, and double what it gives; about 7 lines."""
    graphs = []

    def keep(graph_module, example_inputs):
        graphs.append((graph_module, [tuple(i.shape) for i in example_inputs]))
        return lambda *inputs: tuple(2 * each for each in graph_module(*inputs))

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=keep)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
