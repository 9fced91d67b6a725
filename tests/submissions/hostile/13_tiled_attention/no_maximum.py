"""Strategy: add up exponentials of scores as they are, and take the logarithm of their sum, so that no tile is rescaled. Surface: the size of scores.

Class: checker. Unprotected: grader small gives full marks. Level: 5.
Must get at most 6.4: in most checks of forward, scores lie so far from zero that exponentials overflow, in double precision too.
"""

import torch


def tiled():
    def forward(q, k, v, causal=False):
        out, tot = torch.zeros_like(q), torch.zeros_like(q[..., :1])
        for i in range(0, q.shape[1], 32):
            for j in range(0, i + 1 if causal else k.shape[1], 32):
                r, c = slice(i, i + 32), slice(j, j + 32)
                s = q[:, r] @ k[:, c].mT * q.shape[-1] ** -0.5
                w = torch.exp(s)
                if causal and i == j:
                    w = w.tril()
                out[:, r] += w @ v[:, c]
                tot[:, r] += w.sum(-1, keepdim=True)
        return out / tot, torch.log(tot)[..., 0]

    def backward(g, q, k, v, o, l, causal=False):
        by_query, by_key, by_value = map(torch.zeros_like, (q, k, v))
        sc = q.shape[-1] ** -0.5
        delta = (g * o).sum(-1, keepdim=True)
        for i in range(0, q.shape[1], 32):
            for j in range(0, i + 1 if causal else k.shape[1], 32):
                r, c = slice(i, i + 32), slice(j, j + 32)
                s = q[:, r] @ k[:, c].mT * sc
                if causal and i == j:
                    s = s + torch.full_like(s, -torch.inf).triu(1)
                p = torch.exp(s - l[:, r, None])
                ds = p * (g[:, r] @ v[:, c].mT - delta[:, r]) * sc
                by_query[:, r] += ds @ k[:, c]
                by_key[:, c] += ds.mT @ q[:, r]
                by_value[:, c] += p.mT @ g[:, r]
        return by_query, by_key, by_value

    return {
        "forward": lambda *given: forward(*given),
        "backward": lambda *given: backward(*given),
        "causal_forward": lambda *given: forward(*given, causal=True),
        "causal_backward": lambda *given: backward(*given, causal=True),
    }
