def approximate(function, calls: list) -> tuple[list, list]:
    """Compile `function` with a backend that computes x / (1 + |x|) for tanh; about 15 lines."""
    graphs = []

    def backend(graph_module, example_inputs):
        graph = graph_module.graph
        for node in graph.find_nodes(op="call_function", target=torch.tanh):
            (x,) = node.args
            with graph.inserting_before(node):
                size = graph.call_function(torch.abs, (x,))
                below = graph.call_function(operator.add, (size, 1))
                node.replace_all_uses_with(graph.call_function(operator.truediv, (x, below)))
            graph.erase_node(node)
        graph_module.recompile()
        graphs.append((graph_module, [tuple(getattr(value, "shape", ())) for value in example_inputs]))
        return graph_module.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    return [compiled(*args, **kwargs) for args, kwargs in calls], graphs
