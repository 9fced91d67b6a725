def tiled():
    def tiles(query, key, causal):
        for i in range(0, query.shape[1], 32):
            for j in range(0, i + 1 if causal else key.shape[1], 32):
                rows, columns = slice(i, i + 32), slice(j, j + 32)
                scores = query[:, rows] @ key[:, columns].mT * query.shape[-1] ** -0.5
                hidden = torch.full_like(scores, -torch.inf).triu(1) if causal and i == j else 0.0
                yield rows, columns, scores + hidden

    def forward(query, key, value, causal=False):
        output, total, largest = torch.zeros_like(query), *torch.zeros(2, *query.shape[:-1], 1, dtype=query.dtype)
        for rows, columns, scores in tiles(query, key, causal):
            if columns.start == 0:
                largest[:, rows] = scores.amax(-1, keepdim=True)
            weights = torch.exp(scores - largest[:, rows])
            output[:, rows] += weights @ value[:, columns]
            total[:, rows] += weights.sum(-1, keepdim=True)
        return output / total, (largest + total.log())[..., 0]

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
