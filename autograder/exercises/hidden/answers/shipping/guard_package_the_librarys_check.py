def guarded(package, program):
    from torch._export.utils import _check_input_constraints_for_graph
    from torch.utils._pytree import tree_flatten_with_path

    names = program.graph_signature.user_inputs
    nodes = [node for node in program.graph.find_nodes(op="placeholder") if node.name in names]

    def run(*inputs):
        if len(inputs) != len(names):
            raise ValueError("another number of inputs")
        for name, node, tensor in zip(names, nodes, inputs, strict=True):
            refuse(name, [node], (tensor,))
        refuse("", nodes, inputs)
        return package(*inputs)

    def refuse(name, nodes, tensors):
        try:
            paths = tree_flatten_with_path((tensors, {}))[0]
            _check_input_constraints_for_graph(nodes, paths, program.range_constraints)
        except (RuntimeError, ValueError) as refused:
            raise ValueError(name) from refused

    return run
