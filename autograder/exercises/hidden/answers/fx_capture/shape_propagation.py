def propagate(module: fx.GraphModule, *inputs: torch.Tensor) -> dict:
    """Describe what every node gives; a good answer has about 15 lines."""
    found = {}

    class Describing(fx.Interpreter):
        def run_node(self, node):
            result = super().run_node(node)
            found[node.name] = describe(result)
            return result

    Describing(module).run(*inputs)
    return found


def describe(value):
    if isinstance(value, torch.Tensor):
        return {"shape": list(value.shape), "dtype": str(value.dtype).removeprefix("torch.")}
    if isinstance(value, (tuple, list)):
        return [describe(item) for item in value]
    return value
