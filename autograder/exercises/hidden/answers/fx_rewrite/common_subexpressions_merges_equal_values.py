def recorded(gm, inputs, seed):
    values, kept, written = {}, {}, set()
    torch.manual_seed(seed)
    inputs = iter([t.clone() for t in inputs])
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            values[node] = next(inputs)
        elif node.op == "get_attr":
            values[node] = attribute(gm, node)
        elif node.op.startswith("call"):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            before = {n: (v, v.detach().clone()) for n, v in values.items() if isinstance(v, torch.Tensor)}
            out = outcome(gm, node, args, kwargs)
            for n, (v, old) in before.items():
                if not torch.equal(v, old):
                    written.add(n), written.add(node)
            values[node] = out
            kept[node] = out.clone() if isinstance(out, torch.Tensor) else out
    for n in list(kept):
        if isinstance(values[n], torch.Tensor) and not torch.equal(kept[n].nan_to_num(), values[n].nan_to_num()):
            written.add(n)
    return kept, written


def share_equal(graph_module):
    graph = graph_module.graph
    inputs = []
    for node in graph.nodes:
        if node.op == "placeholder":
            m = node.meta["tensor_meta"]
            inputs.append(torch.randn(m.shape).mul(9).to(m.dtype))
    first, written = recorded(graph_module, inputs, 1)
    second, more = recorded(graph_module, inputs, 2)
    seen = []
    for node in list(graph.nodes):
        if node not in first or node in written or node in more or not same(first[node], second[node]):
            continue
        for other in seen:
            alike = other.target == node.target and len(other.all_input_nodes) == len(node.all_input_nodes)
            if alike and same(first[other], first[node]):
                node.replace_all_uses_with(other)
                graph.erase_node(node)
                break
        else:
            seen.append(node)
    graph_module.recompile()
    return graph_module


def same(one, other):
    if isinstance(one, torch.Tensor) and isinstance(other, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one.nan_to_num(), other.nan_to_num())
    return type(one) is type(other) and one == other
