def tiled():
    def forward(query, key, value, causal=False):
        outs, lses = [], []
        for i in range(0, query.shape[1], 32):
            q = query[:, i : i + 32]
            m = torch.full_like(q[..., :1], float("-inf"))
            total, o = torch.zeros_like(m), torch.zeros_like(q)
            for j in range(0, key.shape[1], 32):
                if causal and j > i:
                    break
                s = torch.einsum("hqd,hkd->hqk", q, key[:, j : j + 32]) * query.shape[-1] ** -0.5
                if causal and j == i:
                    s = s + torch.triu(torch.full_like(s, float("-inf")), diagonal=1)
                m_new = torch.maximum(m, s.max(dim=-1, keepdim=True).values)
                p = torch.exp(s - m_new)
                total = total * torch.exp(m - m_new) + p.sum(dim=-1, keepdim=True)
                o = o * torch.exp(m - m_new) + torch.einsum("hqk,hkd->hqd", p, value[:, j : j + 32])
                m = m_new
            outs.append(o / total)
            lses.append((m + torch.log(total))[:, :, 0])
        return torch.cat(outs, dim=1), torch.cat(lses, dim=1)

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
