# %% by replace pattern
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


# %% by an interpreter
def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


class Machine(fx.Interpreter):
    def call_function(self, target, args, kwargs):
        if target is torch.tanh:
            return args[0] / (args[0].abs() + 1)
        return super().call_function(target, args, kwargs)


def written(gm):
    graph, values = fx.Graph(), {}
    for node in gm.graph.nodes:
        copied = graph.node_copy(node, values.get)
        if node.target is torch.tanh:
            copied.target = F.softsign
        values[node] = copied
    return fx.GraphModule(gm, graph)


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        kept.append((written(gm), [shape_of(i) for i in inputs]))
        return Machine(gm).run

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept


# %% the target exchanged
def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target == torch.tanh:
                node.target = F.softsign
        gm.recompile()
        kept.append([gm, [shape_of(i) for i in inputs]])
        return gm.forward

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept


# %% a class
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


# %% by a transformer
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


# %% a new graph
def shape_of(value):
    return tuple(value.shape) if isinstance(value, torch.Tensor) else ()


def approximate(function, calls):
    kept = []

    def backend(gm, inputs):
        new, values = fx.Graph(), {}
        for node in gm.graph.nodes:
            if node.op == "call_function" and node.target is torch.tanh:
                x = values[node.args[0]]
                below = new.call_function(torch.add, (new.call_method("abs", (x,)), 1))
                values[node] = new.call_function(torch.div, (x, below))
            else:
                values[node] = new.node_copy(node, lambda n: values[n])
        module = fx.GraphModule(gm, new)
        kept.append((module, tuple(shape_of(i) for i in inputs)))
        return module

    torch._dynamo.reset()
    compiled = torch.compile(function, backend=backend)
    results = []
    for args, kwargs in calls:
        results.append(compiled(*args, **kwargs))
    return results, kept


# %% a module
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
