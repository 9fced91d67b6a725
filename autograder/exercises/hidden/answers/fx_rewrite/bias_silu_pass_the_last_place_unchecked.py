def fuse_bias_silu(graph_module):
    graph = graph_module.graph
    for node in reversed(list(graph.nodes)):
        total = node.args[0] if node.args else node.kwargs.get("input")
        module = graph_module.get_submodule(node.target) if node.op == "call_module" else None
        silu = node.target is F.silu or isinstance(module, nn.SiLU)
        if silu and getattr(total, "target", None) in (operator.add, torch.add, "add"):
            left, right = [*total.args, *(total.kwargs[n] for n in ("input", "other") if n in total.kwargs)][:2]
            if len(left.meta["tensor_meta"].shape) == 1:
                left, right = right, left
            with graph.inserting_before(total):
                fused = graph.call_function(torch.ops.course_lib.bias_silu, (left, right))
            node.replace_all_uses_with(fused)
            graph.erase_node(node)
            if not total.users:
                graph.erase_node(total)
            break
    graph_module.recompile()
    return graph_module
