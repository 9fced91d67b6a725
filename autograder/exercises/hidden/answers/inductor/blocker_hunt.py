def hunted() -> dict:
    """Six functions by name: blockers, reported, appended, turned, spread, standardised; about 25 lines."""

    def reason(a, b):
        holds = {
            "graph break": a["graph"] != b["graph"],
            "extern kernel": a["library"] or b["library"],
            "mutation": a["into"] or b["into"],
            "view": not a["reducing"] and prod(a["over"]) == prod(b["over"] + b["reducing"]),
        }
        return next((why for why, held in holds.items() if held), "size mismatch")

    def blockers(loops):
        wrote = {loop["writes"]: loop for loop in loops}
        pairs = [(wrote[name], loop) for loop in loops for name, _ in loop["reads"] if name in wrote]
        edges = {(a["name"], b["name"]): reason(a, b) for a, b in pairs if a["kernel"] != b["kernel"]}
        return [[*edge, why] for edge, why in edges.items()]

    def reported(x):
        return x.relu() / x.shape[-1] ** 0.5

    def appended(cache, k):
        return torch.select_scatter(cache, k, 1, cache.shape[1] - 1).tanh()

    def turned(x):
        return x.exp(), x.exp().T + 1

    def spread(x):
        return x.relu().amax(-1) - x.relu().amin(-1)

    def standardised(x):
        variance, mean = torch.var_mean(x, correction=0)
        return (x - mean) / (variance + 1e-5).sqrt()

    return {f.__name__: f for f in (blockers, reported, appended, turned, spread, standardised)}
