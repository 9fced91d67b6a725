RANDOM = {torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.bernoulli, F.dropout}


def writes(node):  # into what it is called with; `&` and `|` only look as if they did
    name = getattr(node.target, "__name__", node.target)
    in_place = name.endswith("_") and name not in ("and_", "or_")
    return node.op in ("call_function", "call_method") and (in_place or node.kwargs.get("inplace") is True)


def clean_up(graph_module):
    if not any(writes(node) or node.target in RANDOM for node in graph_module.graph.nodes):
        graph_module = fx.symbolic_trace(graph_module)  # Python computes with buffers while it is traced
    graph_module.graph.eliminate_dead_code(
        is_impure_node=lambda node: node.op in ("placeholder", "output") or writes(node) or node.target in RANDOM
    )
    graph_module.recompile()
    return graph_module
