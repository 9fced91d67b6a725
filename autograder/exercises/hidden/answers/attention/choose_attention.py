def choose(need: dict) -> str:
    """Return "sdpa", "mask", "flex", "tiles", "dense" or "none"; about 25 lines."""
    square, on_cpu, blocks, begin = need["length"] ** 2, need["device"] == "cpu", set(), 0
    for tokens in need.get("documents", [need["length"]]):
        own = range(begin // 128, (begin + tokens - 1) // 128 + 1)
        blocks |= {(query, key) for query in own for key in own if key <= query or need["pattern"] == "all"}
        begin += tokens
    fewest = 0  # no variant computes fewer scores than sdpa
    plain, undropped = need["scores"] == "plain", not need["dropout"]
    fused = not need["shares"] and (undropped or not on_cpu)
    mask_bytes = 4 * need["heads"] * square if need["scores"] == "alibi" else 5 * square
    dense_bytes = 8 * need["batch"] * need["heads"] * square
    able = {
        "sdpa": (fused and plain and need["pattern"] != "documents", fewest, 0),
        "mask": (fused and need["scores"] != "soft cap", square, mask_bytes),
        "flex": (fused and undropped and not (need["trains"] and on_cpu), 128**2 * len(blocks), 0),
        "tiles": (undropped and not need["shares"], square, 0),
        "dense": (True, square, dense_bytes),
    }
    fits = [name for name, (can, _, extra) in able.items() if can and extra <= need["free"]]
    best = [name for name in fits if name not in ("tiles", "dense")]
    return min(best, key=lambda name: able[name][1:]) if best else [*fits, "none"][0]
