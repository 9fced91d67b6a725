def trace_keeping(model, leaves):
    packages = {type(m): type(m).__module__ for m in model.modules() if type(m).__name__ in leaves}
    for kept in packages:
        kept.__module__ = "torch.nn"
    try:
        return fx.symbolic_trace(model)
    finally:
        for kept, package in packages.items():
            kept.__module__ = package
