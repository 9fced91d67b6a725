LIMIT = 1.5
LOG = logging.getLogger("limit")


def repaired():
    """The programs as they were."""

    def report(x):
        h = x.relu()
        print("mean", h.mean())
        return h * 2, h.mean()

    def rescale(x):
        return x / x.abs().max().item()

    def branch(x):
        return x * 2 if x.sum() > 0 else x - 1

    def normalise(x):
        norms = []
        for row in x:
            norms.append(row.norm().item())
        return x / torch.tensor(norms)[:, None]

    def area(x):
        return torch.from_numpy(np.trapezoid(x.numpy(), axis=-1))

    def limit(x):
        LOG.warning("outside: %s", (x.abs() > LIMIT).float().mean())
        return x.clamp(-LIMIT, LIMIT), (x.abs() > LIMIT).float().mean()

    return {
        "report": report,
        "rescale": rescale,
        "branch": branch,
        "normalise": normalise,
        "area": area,
        "limit": limit,
    }
