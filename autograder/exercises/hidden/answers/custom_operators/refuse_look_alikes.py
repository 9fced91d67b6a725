def is_safe(match) -> bool:
    """Tell whether a match is bias and GELU, and the operator suits it; about 15 lines."""
    x, bias = match.kwargs["x"], match.kwargs["bias"]
    if not isinstance(x, fx.Node) or not isinstance(bias, fx.Node):
        return False
    if any(node.kwargs for node in match.nodes):
        return False
    inside, last = set(match.nodes), match.output_node()
    if any(not set(node.users) <= inside for node in match.nodes if node is not last):
        return False
    numbers = [match.kwargs[name] for name in ("half", "scale", "one")]
    if not all(map(math.isclose, numbers, (0.5, math.sqrt(0.5), 1))):
        return False
    rows, column = x.meta["val"], bias.meta["val"]
    return column.shape == rows.shape[-1:] and column.dtype == rows.dtype


def fuse_bias_gelu(graph_module):
    fuse_loosely(graph_module, is_safe)
    return graph_module
