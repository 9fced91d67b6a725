size = 32


def forward_(causal):
    def forward(q, k, v):
        m = torch.full((*q.shape[:2], 1), -math.inf, dtype=q.dtype)
        total = torch.zeros((*q.shape[:2], 1), dtype=q.dtype)
        acc = torch.zeros(*q.shape[:2], v.shape[-1], dtype=q.dtype)
        for j in range(0, k.shape[1], size):
            kj, vj = k[:, j : j + size], v[:, j : j + size]
            for i in range(j if causal else 0, q.shape[1], size):
                s = torch.matmul(q[:, i : i + size], kj.transpose(1, 2)) / math.sqrt(q.shape[2])
                if causal and i == j:
                    n = s.shape[-1]
                    s = s.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), -math.inf)
                old = m[:, i : i + size].clone()
                new = torch.maximum(old, s.amax(-1, keepdim=True))
                p, a = torch.exp(s - new), torch.exp(old - new)
                m[:, i : i + size] = new
                total[:, i : i + size] = total[:, i : i + size] * a + p.sum(-1, keepdim=True)
                acc[:, i : i + size] = acc[:, i : i + size] * a + p @ vj
        return acc / total, (m + total.log())[..., 0]

    return forward


def backward_(causal):
    def backward(g, q, k, v, o, lse):
        scale = 1 / math.sqrt(q.shape[2])
        dq, dks, dvs = torch.zeros_like(q), [], []
        d = (g * o).sum(-1)
        for j in range(0, k.shape[1], size):
            kj, vj = k[:, j : j + size], v[:, j : j + size]
            dk, dv = torch.zeros_like(kj), torch.zeros_like(vj)
            for i in range(j if causal else 0, q.shape[1], size):
                qi, gi = q[:, i : i + size], g[:, i : i + size]
                s = torch.matmul(qi, kj.transpose(1, 2)) * scale
                p = torch.exp(s - lse[:, i : i + size].unsqueeze(-1))
                if causal and i == j:
                    p = p.tril()
                dv = dv + p.transpose(1, 2) @ gi
                ds = p * (gi @ vj.transpose(1, 2) - d[:, i : i + size].unsqueeze(-1))
                dk = dk + ds.transpose(1, 2) @ qi * scale
                dq[:, i : i + size] += ds @ kj * scale
            dks.append(dk)
            dvs.append(dv)
        return dq, torch.cat(dks, 1), torch.cat(dvs, 1)

    return backward


def tiled():
    return {
        "forward": forward_(False),
        "causal_forward": forward_(True),
        "backward": backward_(False),
        "causal_backward": backward_(True),
    }
