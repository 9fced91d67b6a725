def hunted():
    """The programs as they were, and nothing named."""

    def blockers(loops):
        return []

    def reported(x):
        h = x.relu()
        print(tuple(h.shape))
        return h / h.shape[-1] ** 0.5

    def appended(cache, k):
        cache[:, -1] = k
        return cache.tanh()

    def turned(x):
        y = x.exp()
        return y, y.T.contiguous() + 1

    def spread(x):
        ranked = x.relu().sort(-1).values
        return ranked[:, -1] - ranked[:, 0]

    def standardised(x):
        centred = x - x.mean()
        return centred / (centred.pow(2).mean() + 1e-5).sqrt()

    functions = (blockers, reported, appended, turned, spread, standardised)
    return {function.__name__: function for function in functions}
