import onnxruntime  # here, since it starts threads


def tell_apart(module: nn.Module, limits: dict, first: bytes, second: bytes) -> tuple:
    """Return "first" or "second", and inputs on which only that model is wrong; about 24 lines."""
    sessions = [onnxruntime.InferenceSession(each) for each in (first, second)]
    promised = sessions[0].get_inputs()

    def drawn(info, sizes, factor):
        low, high = limits[info.name]
        shape = [sizes.get(size, size) for size in info.shape]
        if info.type == "tensor(bool)":
            return torch.rand(shape) < torch.rand(())
        if info.type == "tensor(int64)":
            return torch.randint(low, high + 1, shape)
        values = (low + (high - low) * torch.rand(shape)) * factor
        return values.mul(2).round().div(2) if torch.rand(()) < 0.5 else values

    for _ in range(3000):
        sizes = {name: int(torch.randint(low, high + 1, ())) for name, (low, high) in limits.items()}
        factor = 10 ** -float(torch.rand(()) * 5)
        inputs = tuple(drawn(info, sizes, factor) for info in promised)
        fed = {info.name: each.numpy() for info, each in zip(promised, inputs, strict=True)}
        expected, found = module(*inputs), [torch.from_numpy(session.run(None, fed)[0]) for session in sessions]
        agrees, near = ([torch.allclose(each, expected, rtol=by, atol=by) for each in found] for by in (1e-4, 1e-2))
        for at, name in enumerate(("first", "second")):
            if agrees[1 - at] and not near[at]:
                return name, inputs
    return "first", inputs
