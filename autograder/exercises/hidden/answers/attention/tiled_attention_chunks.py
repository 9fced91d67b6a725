def tiled():
    def forward(query, key, value, causal=False):
        length = query.shape[1]
        ones = torch.ones_like(value[..., :1])
        extended = torch.cat([value, ones], -1)
        out = []
        for start in range(0, length, 32):
            q = query.narrow(1, start, min(32, length - start)) / math.sqrt(query.shape[-1])
            top, acc = None, None
            for at in range(0, key.shape[1], 32):
                if causal and at > start:
                    continue
                size = min(32, key.shape[1] - at)
                s = q @ key.narrow(1, at, size).permute(0, 2, 1)
                if causal and at == start:
                    s = s.masked_fill(~torch.ones(s.shape[1:], dtype=torch.bool).tril(), -math.inf)
                new = s.amax(2, keepdim=True) if top is None else torch.maximum(top, s.amax(2, keepdim=True))
                mixed = (s - new).exp() @ extended.narrow(1, at, size)
                acc = mixed if acc is None else acc * (top - new).exp() + mixed
                top = new
            out.append(torch.cat([acc[..., :-1] / acc[..., -1:], top + acc[..., -1:].log()], -1))
        whole = torch.cat(out, 1)
        return whole[..., :-1], whole[..., -1]

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
