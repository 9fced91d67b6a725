def collect(function, calls):
    graphs = []

    def keep(graph_module, example_inputs):
        def run(*inputs):
            graphs.append((graph_module, [tuple(i.shape) for i in inputs]))
            return tuple(2 * each for each in graph_module(*inputs))

        return run

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=keep)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
