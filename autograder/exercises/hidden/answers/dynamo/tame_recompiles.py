def tamed() -> dict:
    """Four functions by name: pair_means, decayed_sum, faded, plan; about 20 lines together."""

    def pair_means(x):
        return F.pad(x, (0, 0, 0, x.shape[0] % 2)).reshape(-1, 2, 4).mean(1)

    def decayed_sum(x):
        weights = 0.5 ** torch.arange(x.shape[0], dtype=x.dtype)
        return (weights[:, None] * x).sum(0)

    def faded(x, step):
        return x * 0.9**step

    def plan(question):
        calls, looped = question["calls"], question["looped"]
        places = [[i, d] for i, shape in enumerate(calls[0]) for d in range(len(shape))]
        varied = [[i, d] for i, d in places if len({call[i][d] for call in calls}) > 1]
        fixed = [place for place in varied if place in looped]
        kinds = {tuple(call[i][d] for i, d in fixed) for call in calls}
        return {"open": [place for place in varied if place not in looped], "graphs": len(kinds)}

    return {"pair_means": pair_means, "decayed_sum": decayed_sum, "faded": faded, "plan": plan}
