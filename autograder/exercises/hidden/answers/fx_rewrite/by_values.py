def outcome(gm, node, args, kwargs):
    """Return what a call of the graph gives."""
    with torch.no_grad():
        if node.op == "call_function":
            return node.target(*args, **kwargs)
        if node.op == "call_method":
            return getattr(args[0], node.target)(*args[1:], **kwargs)
        return gm.get_submodule(node.target)(*args, **kwargs)


def attribute(gm, node):
    return getattr(gm, node.target) if "." not in node.target else gm.get_parameter(node.target)


def run(gm, call=outcome, held=attribute):
    """Return the value of each node on random inputs, and the nodes that are written to."""
    torch.manual_seed(0)
    values, final = {}, {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            m = node.meta["tensor_meta"]
            values[node] = torch.randn(m.shape).to(m.dtype)
        elif node.op == "get_attr":
            values[node] = held(gm, node)
        elif node.op.startswith("call"):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            values[node] = call(gm, node, args, kwargs)
        if isinstance(values.get(node), torch.Tensor):
            final[node] = values[node].detach().clone()
    return final, {n for n in final if not torch.equal(final[n], values[n])}


def removable(node, stop):
    """Return the calls that nothing needs once `node` is computed from the nodes in `stop`."""
    dead, frontier = [node], [node]
    while frontier:
        for each in frontier.pop().all_input_nodes:
            if each not in stop and each not in dead and each.op.startswith("call") and set(each.users) <= set(dead):
                dead.append(each)
                frontier.append(each)
    return dead
