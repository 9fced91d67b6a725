def tiled():
    def forward(query, key, value, causal=False):
        outs, logs = [], []
        for i, q in enumerate(query.split(32, 1)):
            end = 32 * (i + 1) if causal else key.shape[1]
            s = q @ key[:, :end].mT * q.shape[-1] ** -0.5
            if causal:
                s = s.masked_fill(torch.ones(s.shape[1:], dtype=torch.bool).triu(1 + 32 * i), -torch.inf)
            log = torch.logsumexp(s, -1)
            outs.append(torch.exp(s - log[..., None]) @ value[:, :end])
            logs.append(log)
        return torch.cat(outs, 1), torch.cat(logs, 1)

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

    return {
        "forward": forward,
        "backward": backward,
        "causal_forward": lambda *args: forward(*args, causal=True),
        "causal_backward": lambda *args: backward(*args, causal=True),
    }
