def repaired() -> dict:
    """Six functions of x by name: report, rescale, branch, normalise, area, limit; one or two lines each."""

    def report(x):
        h = x.relu()
        return h * 2, h.mean()

    def rescale(x):
        return x / x.abs().max()

    def branch(x):
        return torch.where(x.sum() > 0, 2 * x, x - 1)

    def normalise(x):
        return x / x.norm(dim=1, keepdim=True)

    def area(x):
        return ((x[..., 1:] + x[..., :-1]) / 2).sum(-1)

    def limit(x):
        return x.clamp(-1.5, 1.5), (x.abs() > 1.5).to(x.dtype).mean()

    functions = (report, rescale, branch, normalise, area, limit)
    return {function.__name__: function for function in functions}
