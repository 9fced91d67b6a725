def break_attention(heads):
    """Return (hidden, heads, mask); a good answer has 4 lines."""
    hidden = torch.randn(2, heads, 4 * heads)
    mask = torch.ones(2, 1, 1, heads, dtype=torch.bool)
    mask[..., -1] = False
    return hidden, heads, mask
