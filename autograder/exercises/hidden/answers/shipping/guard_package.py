def guarded(package, program: ExportedProgram):
    """Return a function of tensors that calls the package if they fit, else raises ValueError; about 20 lines."""
    promised = {node.name: node.meta["val"] for node in program.graph.find_nodes(op="placeholder")}
    names = program.graph_signature.user_inputs
    ranges = {str(symbol): (found.lower, found.upper) for symbol, found in program.range_constraints.items()}

    def fits(tensor, value, sizes):
        if tensor.dtype != value.dtype or tensor.dim() != value.dim() or not tensor.is_contiguous():
            return False
        for size, name in zip(tensor.shape, map(str, value.shape), strict=True):
            low, high = ranges[name] if name in ranges else (int(name), int(name))
            if not (low <= size <= high and sizes.setdefault(name, size) == size):
                return False
        return True

    def run(*inputs):
        sizes = {}
        if len(inputs) != len(names):
            raise ValueError(f"{len(inputs)} tensors given, {len(names)} expected")
        for name, tensor in zip(names, inputs, strict=True):
            if not fits(tensor, promised[name], sizes):
                raise ValueError(f"{name} does not fit: {tensor.dtype}, {tuple(tensor.shape)}")
        return package(*inputs)

    return run
