def lean():
    """The functions as they were."""

    def soften(x, temperature):
        h = x * torch.sigmoid(x)
        if temperature < 0.1:
            temperature = torch.full_like(temperature, 0.1)
        return torch.tanh(h / temperature)

    def mix(a, b, weight):
        return torch.cat([a, b], dim=1) @ weight

    def shares(x):
        return (x / x.sum()).sum(0)

    def scores(q, k):
        scaled = q.float() * q.shape[1] ** -0.5
        return (scaled @ k.float().t()).to(q.dtype)

    return {"soften": soften, "mix": mix, "shares": shares, "scores": scores}
