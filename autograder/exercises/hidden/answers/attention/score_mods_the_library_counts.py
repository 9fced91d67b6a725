def modifications():
    def blocks(question):
        def kept(b, h, q, k):
            near = q - k <= question.get("window", question["length"])
            return (k <= q) & near if question["mask"] != "documents" else (ids[q] == ids[k]) & (k <= q)

        ids = torch.repeat_interleave(torch.tensor(question.get("documents", [question["length"]])))
        length, size = question["length"], question["block"]
        made = create_block_mask(kept, None, None, length, length, device="cpu", BLOCK_SIZE=size)
        full, partial = int(made.full_kv_num_blocks.sum()), int(made.kv_num_blocks.sum())
        return {"full": full, "partial": partial, "empty": math.ceil(length / size) ** 2 - full - partial}

    return {
        "alibi": lambda slopes, score, b, h, q, k: score - slopes[h] * (q - k).abs(),
        "soft_cap": lambda cap, score, b, h, q, k: cap * torch.tanh(score / cap),
        "documents": lambda ids, b, h, q, k: (ids[b, q] == ids[b, k]) & (k <= q),
        "blocks": blocks,
    }
