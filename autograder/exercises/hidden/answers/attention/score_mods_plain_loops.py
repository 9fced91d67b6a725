def modifications():
    def kept(question, q, k):
        if k > q or q - k > question.get("window", q):
            return False
        if question["mask"] == "documents":
            ends = [sum(question["documents"][: i + 1]) for i in range(len(question["documents"]))]
            return sum(end <= q for end in ends) == sum(end <= k for end in ends)
        return True

    def blocks(question):
        length, size = question["length"], question["block"]
        counts = {}
        for q in range(length):
            for k in range(length):
                at = (q // size, k // size)
                counts[at] = counts.get(at, 0) + kept(question, q, k)
        values = list(counts.values())
        full = values.count(size**2)
        return {"full": full, "empty": values.count(0), "partial": len(values) - full - values.count(0)}

    def alibi(slopes, score, batch, head, query, key):
        distance = torch.where(query > key, query - key, key - query)
        return torch.sub(score, slopes[head].mul(distance))

    def soft_cap(cap, score, batch, head, query, key):
        return score.div(cap).tanh().mul(cap)

    def documents(ids, batch, head, query, key):
        mine, other = ids[batch, query], ids[batch, key]
        return torch.where(mine == other, key <= query, False)

    return {"alibi": alibi, "soft_cap": soft_cap, "documents": documents, "blocks": blocks}
