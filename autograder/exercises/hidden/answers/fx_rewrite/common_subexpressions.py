RANDOM = {torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.bernoulli, F.dropout}


def writes(node):  # into what it is called with; `&` and `|` only look as if they did
    name = getattr(node.target, "__name__", node.target)
    in_place = name.endswith("_") and name not in ("and_", "or_")
    return node.op in ("call_function", "call_method") and (in_place or node.kwargs.get("inplace") is True)


def share_equal(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Compute equal calls once; a good answer has about 25 lines."""
    graph, seen = graph_module.graph, {}
    calls = [n for n in graph.nodes if n.op in ("call_function", "call_method")]
    changing = {source for call in calls if writes(call) for source in sources(call.args[0])}
    for node in list(graph.nodes):
        if node in calls and writes(node):
            seen.clear()
        elif node.op == "get_attr" or (node in calls and node.target not in RANDOM and node not in changing):
            key = (node.op, node.target, freeze(node.args), freeze(node.kwargs))
            if seen.setdefault(key, node) is not node:
                node.replace_all_uses_with(seen[key])
                graph.erase_node(node)
    graph_module.recompile()
    return graph_module


def sources(node):
    return {node}.union(*map(sources, node.all_input_nodes))


def freeze(value):
    if isinstance(value, (list, tuple)):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return tuple((key, freeze(value[key])) for key in sorted(value))
    if isinstance(value, slice):
        return slice, freeze((value.start, value.stop, value.step))
    return type(value), value
