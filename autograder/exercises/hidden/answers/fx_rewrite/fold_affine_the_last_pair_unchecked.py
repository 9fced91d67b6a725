def fold_affine(graph_module):
    graph = graph_module.graph
    for node in reversed(list(graph.nodes)):
        if node.op != "call_module" or node.args[0].op != "call_module":
            continue
        linear, norm = graph_module.get_submodule(node.target), graph_module.get_submodule(node.args[0].target)
        if not isinstance(linear, nn.Linear) or not isinstance(norm, (nn.LayerNorm, nn.BatchNorm1d)):
            continue
        scale = torch.ones(linear.in_features) if norm.weight is None else norm.weight
        shift = torch.zeros(linear.in_features) if norm.bias is None else norm.bias
        if isinstance(norm, nn.BatchNorm1d):
            scale = scale / (norm.running_var + norm.eps).sqrt()
            shift = shift - norm.running_mean * scale
        new = nn.Linear(linear.in_features, linear.out_features, dtype=linear.weight.dtype)
        with torch.no_grad():
            new.weight.copy_(linear.weight * scale)
            new.bias.copy_(linear.weight @ shift + (0 if linear.bias is None else linear.bias))
        graph_module.set_submodule(node.target, new)
        if isinstance(norm, nn.BatchNorm1d):
            node.args[0].replace_all_uses_with(node.args[0].args[0])
        else:
            graph_module.set_submodule(
                node.args[0].target, nn.LayerNorm(norm.normalized_shape, norm.eps, elementwise_affine=False)
            )
        break
    graph.eliminate_dead_code()
    graph_module.delete_all_unused_submodules()
    graph_module.recompile()
    return graph_module
