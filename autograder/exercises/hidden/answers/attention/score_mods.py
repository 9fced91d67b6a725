def modifications() -> dict:
    """Four functions by name: alibi, soft_cap, documents, blocks; about 18 lines."""

    def alibi(slopes, score, batch, head, query, key):
        return score - slopes[head] * (query - key).abs()

    def soft_cap(cap, score, batch, head, query, key):
        return cap * torch.tanh(score / cap)

    def documents(ids, batch, head, query, key):
        return (ids[batch, query] == ids[batch, key]) & (key <= query)

    def blocks(question):
        length, block = question["length"], question["block"]
        order = torch.arange(length)
        distance = order[:, None] - order
        kept = (distance >= 0) & (distance <= question.get("window", length))
        if "documents" in question:
            ids = torch.repeat_interleave(torch.tensor(question["documents"]))
            kept = kept & (ids[:, None] == ids)
        parts = [part for rows in kept.split(block) for part in rows.split(block, 1)]
        full = sum(part.all().item() and part.numel() == block**2 for part in parts)
        empty = sum(not part.any() for part in parts)
        return {"full": full, "partial": len(parts) - full - empty, "empty": empty}

    return {f.__name__: f for f in (alibi, soft_cap, documents, blocks)}
