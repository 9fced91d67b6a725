def modifications():
    def documents(ids, batch, head, query, key):
        different = (ids[batch, query] - ids[batch, key]) != 0
        return ~(different | (key > query))

    def blocks(question):
        n, size = question["length"], question["block"]
        dense = torch.ones(n, n, dtype=torch.bool).tril()
        if question["mask"] == "window":
            dense &= torch.ones(n, n, dtype=torch.bool).triu(-question["window"])
        if question["mask"] == "documents":
            dense &= torch.block_diag(*(torch.ones(m, m) for m in question["documents"])).bool()
        side = math.ceil(n / size)
        dense = F.pad(dense, (0, side * size - n, 0, side * size - n))
        counts = dense.view(side, size, side, size).sum((1, 3))
        full, empty = int((counts == size * size).sum()), int((counts == 0).sum())
        return {"empty": empty, "full": full, "partial": side * side - empty - full}

    def alibi(slopes, score, batch, head, query, key):
        slope = slopes[head]
        return score + slope * torch.minimum(query - key, key - query)

    def soft_cap(cap, score, batch, head, query, key):
        scaled = score / cap
        return cap * scaled.tanh()

    return {"documents": documents, "blocks": blocks, "alibi": alibi, "soft_cap": soft_cap}
