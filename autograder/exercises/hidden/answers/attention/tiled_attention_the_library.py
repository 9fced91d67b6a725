def tiled():
    def forward(q, k, v, causal=False):
        output = F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
        return output, torch.logsumexp(q @ k.mT / math.sqrt(q.shape[-1]), -1)

    def backward(g, q, k, v, o, lse, causal=False):
        leaves = [t.detach().requires_grad_() for t in (q, k, v)]
        with torch.enable_grad():
            out = F.scaled_dot_product_attention(*(t[None] for t in leaves), is_causal=causal)[0]
        return torch.autograd.grad(out, leaves, g)

    return {
        "forward": forward,
        "backward": backward,
        "causal_forward": lambda *args: forward(*args, causal=True),
        "causal_backward": lambda *args: backward(*args, causal=True),
    }
