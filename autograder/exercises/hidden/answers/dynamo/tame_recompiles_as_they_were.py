def tamed():
    """The programs as they were."""

    def pair_means(x):
        if x.shape[0] % 2:
            x = F.pad(x, (0, 0, 0, 1))
        return x.reshape(-1, 2, 4).mean(1)

    def decayed_sum(x):
        total = torch.zeros(4, dtype=x.dtype)
        for i in range(x.shape[0]):
            total = total + 0.5**i * x[i]
        return total

    def faded(x, step):
        return x * 0.9 ** int(step)

    def plan(question):
        first = question["calls"][0]
        return {"open": [[i, d] for i, shape in enumerate(first) for d in range(len(shape))], "graphs": 1}

    return {"pair_means": pair_means, "decayed_sum": decayed_sum, "faded": faded, "plan": plan}
