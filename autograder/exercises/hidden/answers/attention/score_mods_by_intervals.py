def modifications():
    def ends(question):
        if question["mask"] != "documents":
            return [0] * question["length"]
        return [sum(question["documents"][:i]) for i, n in enumerate(question["documents"]) for _ in range(n)]

    def blocks(question):
        length, size = question["length"], question["block"]
        first = [max(low, q - question.get("window", length)) for q, low in enumerate(ends(question))]
        found = {"full": 0, "partial": 0, "empty": 0}
        for a in range(0, length, size):
            for b in range(0, length, size):
                rows = range(a, min(a + size, length))
                kept = sum(max(0, min(q, b + size - 1) - max(first[q], b) + 1) for q in rows)
                found["full" if kept == size * size else "partial" if kept else "empty"] += 1
        return found

    return {
        "alibi": lambda slopes, score, b, h, q, k: score - slopes[h] * torch.maximum(q - k, k - q),
        "soft_cap": lambda cap, score, b, h, q, k: torch.tanh(score / cap) * cap,
        "documents": lambda ids, b, h, q, k: torch.logical_and(ids[b, q].eq(ids[b, k]), q >= k),
        "blocks": blocks,
    }
