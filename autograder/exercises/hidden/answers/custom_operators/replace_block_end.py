def fuse_block_ends(graph_module):
    """Replace each sum with LayerNorm behind it in the graph, and return the graph; about 20 lines."""

    def block_end(x, residual, weight, bias, eps):
        return F.layer_norm(x + residual, weight.shape, weight, bias, eps)

    def fused_end(x, residual, weight, bias, eps):
        return torch.ops.course_lib.residual_layer_norm(x, residual, weight, bias, eps)

    def suits(match):
        nodes = [match.kwargs[name] for name in ("x", "residual", "weight", "bias")]
        if not all(isinstance(node, fx.Node) for node in nodes):
            return False
        if any("alpha" in node.kwargs for node in match.nodes):
            return False
        x, residual, weight, bias = (node.meta["val"] for node in nodes)
        same_dtype = x.dtype == residual.dtype == weight.dtype == bias.dtype
        return same_dtype and x.shape == residual.shape and weight.shape == bias.shape == x.shape[-1:]

    patterns = PatternMatcherPass()
    examples = [torch.empty(shape) for shape in ((4, 8), (4, 8), (8,), (8,))]
    eps = {"eps": 0.1234}
    register_replacement(block_end, fused_end, examples, fwd_only, patterns, extra_check=suits, scalar_workaround=eps)
    patterns.apply(with_fake_values(graph_module))
    graph_module.recompile()
    return graph_module
