RANDOM = {torch.rand, torch.randn, torch.rand_like, torch.randn_like, torch.bernoulli, F.dropout}


def writes(node):  # into what it is called with; `&` and `|` only look as if they did
    name = getattr(node.target, "__name__", node.target)
    in_place = name.endswith("_") and name not in ("and_", "or_")
    return node.op in ("call_function", "call_method") and (in_place or node.kwargs.get("inplace") is True)


def effects(gm):
    return [str(n.target) for n in gm.graph.nodes if writes(n) or n.target in RANDOM]


def clean_up(graph_module):
    again = fx.symbolic_trace(copy.deepcopy(graph_module))  # Python computes with buffers while it is traced
    if effects(again) == effects(graph_module):
        graph_module = again
    graph_module.graph.eliminate_dead_code(
        is_impure_node=lambda n: n.op in ("placeholder", "output") or writes(n) or n.target in RANDOM
    )
    graph_module.recompile()
    return graph_module
