def first_differences(before: fx.GraphModule, after: fx.GraphModule) -> tuple[list, list]:
    """Return two lists of names, of nodes before and of nodes after; about 22 lines."""
    numbers = {}

    def classes(program):
        known, inputs = {}, program.graph.find_nodes(op="placeholder")
        for node in program.graph.nodes:
            what = inputs.index(node) if node.op == "placeholder" else node.target
            if node.op == "get_attr":
                tensor = getattr(program, node.target)
                what = tensor.dtype, tensor.tolist()
            operands = fx.map_arg((node.args, sorted(node.kwargs.items())), lambda each: ("node", known[each]))
            known[node] = numbers.setdefault(repr((node.op, what, operands)), len(numbers))
        return known

    def starts(known, others):
        left, missing = Counter(others.values()), set()
        for node, number in known.items():
            left[number] -= 1
            if left[number] < 0:
                missing.add(node)
        return [node.name for node in missing if not missing.intersection(node.all_input_nodes)]

    one, other = classes(before), classes(after)
    return starts(one, other), starts(other, one)
