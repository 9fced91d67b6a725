FUSED = torch.ops.course_lib.scale_dropout_residual_rms_norm


def named(node, *names):  # a call's arguments by name, however they were given
    return dict(zip(names, node.args, strict=False)) | node.kwargs


def facts(node):  # shape and dtype; None and None for what is no tensor
    meta = getattr(node, "meta", {}).get("tensor_meta")
    return (tuple(meta.shape), meta.dtype) if meta else (None, None)


def fuse_scale_dropout_rms_norm(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Fuse rms_norm(residual + dropout(x * scale)); a good answer has about 60 lines."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        parts = norm_parts(graph_module, node)
        found = branch_parts(graph_module, node, parts[0]) if parts else None
        if found is None:
            continue
        (total, weight, eps), (chain, operands, options) = parts, found
        with graph.inserting_before(node):
            weight = graph.get_attr(weight) if isinstance(weight, str) else weight
            fused = graph.call_function(FUSED, (*operands, weight, *options, eps))
        fused.meta = dict(node.meta)
        node.replace_all_uses_with(fused)
        for old in (node, total, *chain):
            graph.erase_node(old)
    graph.lint()
    graph_module.recompile()
    return graph_module


def calls(node, *targets):
    return isinstance(node, fx.Node) and node.target in targets and node.op in ("call_function", "call_method")


def written(node):
    in_place = getattr(node.target, "__name__", node.target).endswith("_") or node.kwargs.get("inplace") is True
    return node.op in ("call_function", "call_method") and in_place


def norm_parts(graph_module, node):
    module = graph_module.get_submodule(node.target) if node.op == "call_module" else None
    if type(module) is nn.RMSNorm and module.elementwise_affine:
        total, shape, weight, eps = node.args[0], module.normalized_shape, f"{node.target}.weight", module.eps
    elif calls(node, F.rms_norm, torch.rms_norm):
        given = named(node, "input", "normalized_shape", "weight", "eps")
        total, shape, weight, eps = given["input"], given["normalized_shape"], given.get("weight"), given.get("eps")
    else:
        return None
    if weight is None or len(shape) != 1:
        return None
    return total, weight, torch.finfo(facts(total)[1]).eps if eps is None else eps


def branch_parts(graph_module, node, total):
    given = named(total, "input", "other", "alpha")
    if not calls(total, operator.add, torch.add, "add") or given.get("alpha", 1) != 1:
        return None
    nodes = list(graph_module.graph.nodes)
    for dropped, residual in ((given["input"], given["other"]), (given["other"], given["input"])):
        product, *options = dropout_parts(graph_module, dropped)
        if not calls(product, operator.mul, torch.mul, "mul"):
            continue
        between = nodes[nodes.index(product) : nodes.index(node)]
        if any(len(n.users) != 1 for n in (total, dropped, product)) or any(map(written, between)):
            continue
        left, right = named(product, "input", "other").values()
        for x, scale in ((left, right), (right, left)):
            shape, dtype = facts(x)
            if shape and facts(residual) == (shape, dtype) and facts(scale) == (shape[-1:], dtype) != (shape, dtype):
                return (dropped, product), (x, scale, residual), options
    return None


def dropout_parts(graph_module, node):
    module = graph_module.get_submodule(node.target) if getattr(node, "op", "") == "call_module" else None
    if type(module) is nn.Dropout:
        return node.args[0], module.p, module.training
    if calls(node, F.dropout):
        given = named(node, "input", "p", "training")
        return given["input"], given.get("p", 0.5), given.get("training", True)
    return None, 0.0, False
