def lean() -> dict:
    """Four functions by name: soften, mix, shares, scores; one or two lines each."""

    def soften(x, temperature):
        h = x * torch.sigmoid(x)
        return torch.tanh(h / temperature.clamp(min=0.1))

    def mix(a, b, weight):
        top, bottom = weight.split([a.shape[1], b.shape[1]])
        return torch.addmm(a @ top, b, bottom)

    def shares(x):
        columns = x.sum(0)
        return columns / columns.sum()

    def scores(q, k):
        return (q @ k.t()) * q.shape[1] ** -0.5

    return {function.__name__: function for function in (soften, mix, shares, scores)}
