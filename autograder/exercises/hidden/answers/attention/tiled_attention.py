def tiled() -> dict:
    """Four functions by name: forward, causal_forward, backward, causal_backward; about 25 lines."""

    def tiles(query, key, causal):
        for i in range(0, query.shape[1], 32):
            for j in range(0, i + 1 if causal else key.shape[1], 32):
                rows, columns = slice(i, i + 32), slice(j, j + 32)
                scores = query[:, rows] @ key[:, columns].mT * query.shape[-1] ** -0.5
                hidden = torch.full_like(scores, -torch.inf).triu(1) if causal and i == j else 0.0
                yield rows, columns, scores + hidden

    def forward(query, key, value, causal=False):
        output, lse = torch.zeros_like(query), torch.full_like(query[..., 0], -torch.inf)
        for rows, columns, scores in tiles(query, key, causal):
            new = torch.logaddexp(lse[:, rows], scores.logsumexp(-1))
            kept = output[:, rows] * torch.exp(lse[:, rows] - new)[..., None]
            output[:, rows] = kept + torch.exp(scores - new[..., None]) @ value[:, columns]
            lse[:, rows] = new
        return output, lse

    def backward(grad, query, key, value, output, lse, causal=False):
        delta = (grad * output).sum(-1, keepdim=True)
        by_query, by_key, by_value = map(torch.zeros_like, (query, key, value))
        for rows, columns, scores in tiles(query, key, causal):
            shares = torch.exp(scores - lse[:, rows, None])
            by_scores = shares * (grad[:, rows] @ value[:, columns].mT - delta[:, rows]) * query.shape[-1] ** -0.5
            by_query[:, rows] += by_scores @ key[:, columns]
            by_key[:, columns] += by_scores.mT @ query[:, rows]
            by_value[:, columns] += shares.mT @ grad[:, rows]
        return by_query, by_key, by_value

    both = {"forward": forward, "backward": backward}
    return both | {f"causal_{name}": partial(each, causal=True) for name, each in both.items()}
