def propagate(module, *inputs):
    from torch.fx.passes.shape_prop import ShapeProp, TensorMetadata

    ShapeProp(module).propagate(*inputs)

    def d(m):
        if isinstance(m, TensorMetadata):
            return {"shape": list(m.shape), "dtype": str(m.dtype)[6:]}
        if isinstance(m, (tuple, list)):
            return [d(x) for x in m]
        return m

    return {n.name: d(n.meta.get("tensor_meta")) for n in module.graph.nodes}
