def insert_tanh(graph_module: fx.GraphModule) -> fx.GraphModule:
    """Put torch.tanh behind every torch.relu; a good answer has about 10 lines."""
    graph = graph_module.graph
    for node in list(graph.nodes):
        if node.op == "call_function" and node.target is torch.relu:
            with graph.inserting_after(node):
                new = graph.call_function(torch.tanh, (node,))
            node.replace_all_uses_with(new, delete_user_cb=lambda user, new=new: user is not new)
    graph.lint()
    graph_module.recompile()
    return graph_module
