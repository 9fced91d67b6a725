OP = torch.ops.course_lib.bias_silu


def drawn(gm, node):
    value = attribute(gm, node)
    return torch.randn_like(value) if value.dtype.is_floating_point else value


def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    while fuse_one(graph_module):
        pass
    graph.lint()
    graph_module.recompile()
    return graph_module


def fuse_one(gm):
    graph = gm.graph
    values, changed = run(gm, held=drawn)
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
