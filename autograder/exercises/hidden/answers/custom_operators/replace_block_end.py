def block_end(x, residual, weight, bias, eps):
    """The pattern: a sum, then LayerNorm over the last dimension."""
    return F.layer_norm(x + residual, weight.shape, weight, bias, eps)


def fused_end(x, residual, weight, bias, eps):
    """The replacement: one call of the operator."""
    return torch.ops.course_lib.residual_layer_norm(x, residual, weight, bias, eps)


def suits(match) -> bool:
    """Tell whether the operator takes what the match found."""
    names = ("x", "residual", "weight", "bias")
    if not all(isinstance(match.kwargs[name], fx.Node) for name in names):
        return False
    if any("alpha" in node.kwargs for node in match.nodes):
        return False
    x, residual, weight, bias = (match.kwargs[name].meta["val"] for name in names)
    same_dtype = x.dtype == residual.dtype == weight.dtype == bias.dtype
    return same_dtype and x.shape == residual.shape and weight.shape == bias.shape == x.shape[-1:]


def fuse_block_ends(graph_module):
    """Replace each block end in the graph, and return it."""
    patterns = PatternMatcherPass()
    examples = [torch.empty(shape) for shape in ((4, 8), (4, 8), (8,), (8,))]
    register_replacement(
        block_end, fused_end, examples, fwd_only, patterns, extra_check=suits, scalar_workaround={"eps": 0.1234}
    )
    patterns.apply(with_fake_values(graph_module))
    graph_module.graph.lint()
    graph_module.recompile()
    return graph_module
