def tiled():
    def forward(query, key, value, causal=False):
        output = torch.zeros_like(query)
        lse = torch.zeros_like(query[:, :, 0])
        for i in range(0, query.shape[1], 32):
            q = query[:, i : i + 32] * query.shape[-1] ** -0.5
            last = min(i + 32, key.shape[1]) if causal else key.shape[1]
            m = torch.zeros_like(q[..., :1]) - 1e30
            total = torch.zeros_like(m)
            acc = torch.zeros_like(q)
            for j in range(0, last, 32):
                s = q @ key[:, j : j + 32].transpose(-1, -2)
                if causal:
                    rows = torch.arange(i, i + s.shape[1])[:, None]
                    s = s.masked_fill(torch.arange(j, j + s.shape[2]) > rows, -1e30)
                new = torch.maximum(m, s.amax(-1, True))
                p = (s - new).exp()
                total.mul_((m - new).exp()).add_(p.sum(-1, True))
                acc.mul_((m - new).exp()).add_(p @ value[:, j : j + 32])
                m = new
            output[:, i : i + 32] = acc / total
            lse[:, i : i + 32] = (m + total.log()).squeeze(-1)
        return output, lse

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
