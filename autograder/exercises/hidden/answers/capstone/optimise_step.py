def optimise(gm: fx.GraphModule) -> fx.GraphModule:
    """Return a graph whose training step is cheaper; about 22 lines."""
    modules, graph = dict(gm.named_modules()), gm.graph

    def of(node, kind):
        return isinstance(node, fx.Node) and node.op == "call_module" and type(modules[node.target]) is kind

    for norm in [node for node in graph.nodes if of(node, nn.LayerNorm)]:
        total = norm.args[0]
        dropped = [term for term in total.args if of(term, nn.Dropout) and of(term.args[0], nn.Linear)]
        if total.target is not operator.add or len(total.users) > 1 or not dropped:
            continue
        drop, linear = dropped[0], dropped[0].args[0]
        residual = next(term for term in total.args if term is not drop)
        paths = f"{linear.target}.bias", f"{norm.target}.weight", f"{norm.target}.bias"
        with graph.inserting_before(norm):
            product = graph.call_function(F.linear, (linear.args[0], graph.get_attr(f"{linear.target}.weight")))
            bias, weight, shift = map(graph.get_attr, paths)
            rest = modules[drop.target].p, modules[drop.target].training, modules[norm.target].eps
            fused = torch.ops.course_lib.bias_dropout_residual_layer_norm.default
            norm.replace_all_uses_with(graph.call_function(fused, (product, bias, residual, weight, shift, *rest)))
        for node in (norm, total, drop, linear):
            graph.erase_node(node)
    gm.recompile()
    return gm
