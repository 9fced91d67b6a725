def replayed(function):
    """Return a function that captures once for each shape, and replays; about 20 lines."""

    def captured(inputs):
        static = [each.clone() for each in inputs]
        random_state = torch.get_rng_state()
        with warm_up():
            function(*static)
        torch.set_rng_state(random_state)
        with (graph := Graph()):
            result = function(*static)
        return graph, static, result

    def call(*inputs):
        shapes = tuple(each.shape for each in inputs)
        if shapes not in known:
            known[shapes] = captured(inputs)
        graph, static, result = known[shapes]
        for kept, new in zip(static, inputs, strict=True):
            kept.copy_(new)
        graph.replay()
        return result.clone()

    known = {}
    return call
