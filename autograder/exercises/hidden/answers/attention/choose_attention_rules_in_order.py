def choose(need):
    n, heads, batch = need["length"], need["heads"], need["batch"]
    dense = "dense" if need["free"] >= 8 * batch * heads * n * n else "none"
    if need["shares"] or (need["dropout"] and need["device"] == "cpu"):
        return dense
    mask_fits = need["free"] >= n * n * (4 * heads if need["scores"] == "alibi" else 5)
    if need["scores"] == "plain" and need["pattern"] != "documents":
        return "sdpa"
    if not need["dropout"]:
        if need["device"] == "cuda" or not need["trains"]:
            rows = [0] * (-(-n // 128))
            start = 0
            for tokens in need.get("documents", [n]):
                first, last = start // 128, (start + tokens - 1) // 128
                for row in range(first, last + 1):
                    # keys of a row of blocks: what an earlier document reached, and this one
                    reach = range(first, last + 1) if need["pattern"] == "all" else range(first, row + 1)
                    rows[row] = rows[row] | sum(1 << block for block in reach)
                start += tokens
            computed = sum(bin(row).count("1") for row in rows) * 128 * 128
            if computed <= n * n or not mask_fits or need["scores"] == "soft cap":
                return "flex"
            return "mask"
        return "mask" if mask_fits and need["scores"] != "soft cap" else "tiles"
    return "mask" if mask_fits and need["scores"] != "soft cap" else dense
