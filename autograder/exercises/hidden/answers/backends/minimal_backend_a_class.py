def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


class Keeper:
    def __init__(self):
        self.graphs = []

    def __call__(self, gm, inputs):
        for node in list(gm.graph.nodes):
            if node.target is torch.tanh:
                with gm.graph.inserting_after(node):
                    new = gm.graph.call_function(F.softsign, node.args, node.kwargs)
                node.replace_all_uses_with(new)
                gm.graph.erase_node(node)
        gm.graph.lint()
        gm.recompile()
        self.graphs.append((gm, [shape_of(i) for i in inputs]))
        return gm


def approximate(function, calls):
    torch._dynamo.reset()
    keeper = Keeper()
    compiled = torch.compile(function, backend=keeper)
    return [compiled(*args, **kwargs) for args, kwargs in calls], keeper.graphs
