def mask_tokens(tokens, seed, *, letters, mask, padding):
    """Return (hidden, labels), in about 8 lines; `masked_loss(logits, labels)` below it has 2."""
    generator = torch.Generator().manual_seed(seed)
    chance = torch.rand(tokens.shape, generator=generator)
    fate = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(letters, tokens.shape, generator=generator)
    selected = (chance < 0.15) & (tokens != padding)
    hidden = torch.where(selected & (fate < 0.8), mask, tokens)
    hidden = torch.where(selected & (fate >= 0.9), others, hidden)
    return hidden, torch.where(selected, tokens, -100)


def masked_loss(logits, labels):
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
    return total / (labels != -100).sum().clamp(min=1)
