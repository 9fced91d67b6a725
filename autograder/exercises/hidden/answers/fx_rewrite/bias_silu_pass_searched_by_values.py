OP = torch.ops.course_lib.bias_silu


def run(gm):
    torch.manual_seed(0)
    values, final = {}, {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            m = node.meta["tensor_meta"]
            values[node] = torch.randn(m.shape).to(m.dtype)
        elif node.op == "get_attr":
            values[node] = getattr(gm, node.target) if "." not in node.target else gm.get_parameter(node.target)
            if values[node].dtype.is_floating_point:
                values[node] = torch.randn_like(values[node])
        elif node.op.startswith("call"):
            args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
            with torch.no_grad():
                if node.op == "call_function":
                    out = node.target(*args, **kwargs)
                elif node.op == "call_method":
                    out = getattr(args[0], node.target)(*args[1:], **kwargs)
                else:
                    out = gm.get_submodule(node.target)(*args, **kwargs)
            values[node] = out
        if isinstance(values.get(node), torch.Tensor):
            final[node] = values[node].detach().clone()
    changed = {n for n in final if not torch.equal(final[n], values[n])}
    return final, changed


def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    while fuse_one(graph_module):
        pass
    graph.lint()
    graph_module.recompile()
    return graph_module


def fuse_one(gm):
    graph = gm.graph
    values, changed = run(gm)
    nodes = list(graph.nodes)
    order = {n: i for i, n in enumerate(nodes)}
    tensors = [n for n in nodes if n in values]
    for node in reversed(tensors):
        if not node.op.startswith("call") or node.target in (OP, OP.default):
            continue
        before = [n for n in tensors if order[n] < order[node] and n not in changed]
        for b in before:
            if values[b].shape != values[node].shape[-1:] or values[b].dtype != values[node].dtype:
                continue
            for x in before:
                if values[x].shape != values[node].shape or values[x].dtype != values[node].dtype:
                    continue
                if not torch.allclose(F.silu(values[x] + values[b]), values[node], 1e-3, 1e-4):
                    continue
                dead = removable(node, {x, b})
                if len(dead) < 2 or node in changed:
                    continue
                with graph.inserting_before(node):
                    new = graph.call_function(OP, (x, b))
                new.meta = dict(node.meta)
                node.replace_all_uses_with(new)
                for each in dead:
                    graph.erase_node(each)
                return True
    return False


def removable(node, stop):
    dead, frontier = [node], [node]
    while frontier:
        for each in frontier.pop().all_input_nodes:
            if each not in stop and each not in dead and each.op.startswith("call") and set(each.users) <= set(dead):
                dead.append(each)
                frontier.append(each)
    return dead
