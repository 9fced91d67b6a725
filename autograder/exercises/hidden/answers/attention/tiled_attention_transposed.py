def tiled():
    def forward(query, key, value, causal=False):
        outs, logs = [], []
        for i in range(0, query.shape[1], 32):
            q = query[:, i : i + 32].mT * query.shape[-1] ** -0.5
            m = torch.full((query.shape[0], 1, q.shape[-1]), -torch.inf, dtype=q.dtype)
            total, acc = torch.zeros_like(m), torch.zeros_like(q)
            for j in range(0, i + 1 if causal else key.shape[1], 32):
                s = key[:, j : j + 32] @ q
                if causal and i == j:
                    s = s.masked_fill(torch.ones(s.shape[1:], dtype=torch.bool).tril(-1), -torch.inf)
                new = torch.maximum(m, s.amax(1, keepdim=True))
                a, p = (m - new).exp(), (s - new).exp()
                m, total = new, total * a + p.sum(1, keepdim=True)
                acc = acc * a + value[:, j : j + 32].mT @ p
            outs.append((acc / total).mT)
            logs.append((m + total.log())[:, 0])
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
