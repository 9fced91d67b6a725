def trace_keeping(model: nn.Module, leaves: list[str]) -> fx.GraphModule:
    """Trace with chosen classes kept whole; a good answer has about 5 lines."""

    class Keeping(fx.Tracer):
        def is_leaf_module(self, module, path):
            return type(module).__name__ in leaves or super().is_leaf_module(module, path)

    return fx.GraphModule(model, Keeping().trace(model))
