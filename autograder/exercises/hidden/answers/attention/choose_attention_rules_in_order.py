def choose(need):
    n, heads, batch = need["length"], need["heads"], need["batch"]
    dense = "dense" if need["free"] >= 8 * batch * heads * n * n else "none"
    if need["shares"] or (need["dropout"] and need["device"] == "cpu"):
        return dense
    mask_fits = need["free"] >= n * n * (4 * heads if need["scores"] == "alibi" else 1)
    if need["scores"] == "plain" and need["pattern"] != "documents":
        return "sdpa"
    if not need["dropout"]:
        if need["device"] == "cuda" or not need["trains"]:
            return "flex"
        return "mask" if mask_fits and need["scores"] != "soft cap" else "tiles"
    return "mask" if mask_fits and need["scores"] != "soft cap" else dense
