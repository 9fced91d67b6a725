def tiled():
    def forward(query, key, value, causal=False):
        outs, lses = [], []
        for i in range(0, query.shape[1], 32):
            q = query[:, i : i + 32]
            m, total, o = -torch.inf, 0.0, 0.0
            for j in range(0, i + 1 if causal else key.shape[1], 32):
                s = q @ key[:, j : j + 32].mT * query.shape[-1] ** -0.5
                if causal and j == i:
                    s = s.masked_fill(torch.ones(s.shape[1:], dtype=torch.bool).triu(1), -torch.inf)
                new = s.amax(-1, keepdim=True)
                new = new if isinstance(m, float) else torch.maximum(m, new)
                p, a = torch.exp(s - new), torch.exp(m - new)
                m, total, o = new, total * a + p.sum(-1, keepdim=True), o * a + p @ value[:, j : j + 32]
            outs.append(o / total)
            lses.append((m + total.log())[..., 0])
        return torch.cat(outs, 1), torch.cat(lses, 1)

    def backward(grad, query, key, value, output, lse, causal=False):
        leaves = [t.detach().requires_grad_() for t in (query, key, value)]
        with torch.enable_grad():
            out, _ = forward(*leaves, causal=causal)
        return torch.autograd.grad(out, leaves, grad)

    return {
        "forward": forward,
        "backward": backward,
        "causal_forward": lambda *args: forward(*args, causal=True),
        "causal_backward": lambda *args: backward(*args, causal=True),
    }
