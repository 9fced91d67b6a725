def of_tile(q, k, v, diagonal):
    s = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
    if diagonal:
        order = torch.arange(s.shape[-1])
        s = torch.where(order[:, None] >= order, s, -torch.inf)
    lse = torch.logsumexp(s, -1, keepdim=True)
    return torch.bmm(torch.exp(s - lse), v), lse


def merged(one, two):
    lse = torch.logaddexp(one[1], two[1])
    return one[0] * torch.exp(one[1] - lse) + two[0] * torch.exp(two[1] - lse), lse


def forward(query, key, value, causal=False):
    rows = []
    for i, q in enumerate(query.split(32, 1)):
        found = None
        for j, (k, v) in enumerate(zip(key.split(32, 1), value.split(32, 1), strict=True)):
            if causal and j > i:
                continue
            part = of_tile(q, k, v, causal and i == j)
            found = part if found is None else merged(found, part)
        rows.append(found)
    return torch.cat([o for o, _ in rows], 1), torch.cat([total for _, total in rows], 1).squeeze(-1)


def backward(grad, query, key, value, output, lse, causal=False):
    scale = query.shape[-1] ** -0.5
    delta = (grad * output).sum(-1, keepdim=True)
    gq, gk, gv = [], [0] * -(-key.shape[1] // 32), [0] * -(-key.shape[1] // 32)
    for i, (q, g, row, d) in enumerate(zip(*(t.split(32, 1) for t in (query, grad, lse, delta)), strict=True)):
        mine = 0
        for j, (k, v) in enumerate(zip(key.split(32, 1), value.split(32, 1), strict=True)):
            if causal and j > i:
                break
            p = torch.exp(torch.bmm(q * scale, k.transpose(1, 2)) - row.unsqueeze(2))
            p = torch.tril(p) if causal and j == i else p
            ds = p * (torch.bmm(g, v.transpose(1, 2)) - d)
            mine = mine + torch.bmm(ds, k * scale)
            gk[j] = gk[j] + torch.bmm(ds.transpose(1, 2), q * scale)
            gv[j] = gv[j] + torch.bmm(p.transpose(1, 2), g)
        gq.append(mine)
    return tuple(torch.cat(each, 1) for each in (gq, gk, gv))


def tiled():
    return {
        "forward": forward,
        "backward": backward,
        "causal_forward": lambda *args: forward(*args, causal=True),
        "causal_backward": lambda *args: backward(*args, causal=True),
    }
