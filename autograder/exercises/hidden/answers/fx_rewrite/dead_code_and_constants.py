RANDOM = {torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.bernoulli, F.dropout}


def writes(node):  # into what it is called with; `&` and `|` only look as if they did
    name = getattr(node.target, "__name__", node.target)
    in_place = name.endswith("_") and name not in ("and_", "or_")
    return node.op in ("call_function", "call_method") and (in_place or node.kwargs.get("inplace") is True)


def clean_up(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Fold constants, then erase dead code; a good answer has about 25 lines."""
    graph, known = graph_module.graph, {}
    calls = [n for n in graph.nodes if n.op in ("call_function", "call_method")]
    changing = {source for call in calls if writes(call) for source in sources(call.args[0])}
    for node in list(graph.nodes):
        if node in changing or node.target in RANDOM:
            continue
        if node.op == "get_attr":
            tensor = operator.attrgetter(node.target)(graph_module)
            if not isinstance(tensor, nn.Parameter):
                known[node] = tensor
        elif node in calls and not writes(node) and known.keys() >= set(node.all_input_nodes):
            args, kwargs = fx.map_arg((node.args, node.kwargs), known.__getitem__)
            function = getattr(torch.Tensor, node.target) if node.op == "call_method" else node.target
            graph_module.register_buffer(f"folded_{node.name}", function(*args, **kwargs))
            with graph.inserting_before(node):
                folded = graph.get_attr(f"folded_{node.name}")
            node.replace_all_uses_with(folded)
            known[folded] = getattr(graph_module, folded.target)
    effects = {n for n in calls if writes(n) or n.target in RANDOM}
    graph.eliminate_dead_code(is_impure_node=lambda n: n in effects or n.op in ("placeholder", "output"))
    graph_module.recompile()
    return graph_module


def sources(node):
    return {node}.union(*map(sources, node.all_input_nodes))
