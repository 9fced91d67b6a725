def choose(need: dict) -> str:
    """Return "sdpa", "mask", "flex", "tiles", "dense" or "none"; about 18 lines."""
    square, on_cpu = need["length"] ** 2, need["device"] == "cpu"
    kept = square
    if need["pattern"] != "all":
        kept = sum(n * (n + 1) // 2 for n in need.get("documents", [need["length"]]))
    plain, undropped = need["scores"] == "plain", not need["dropout"]
    fused = not need["shares"] and (undropped or not on_cpu)
    mask_bytes = 4 * need["heads"] * square if need["scores"] == "alibi" else square
    dense_bytes = 8 * need["batch"] * need["heads"] * square
    able = {
        "sdpa": (fused and plain and need["pattern"] != "documents", kept, 0),
        "mask": (fused and need["scores"] != "soft cap", square, mask_bytes),
        "flex": (fused and undropped and not (need["trains"] and on_cpu), kept, 0),
        "tiles": (undropped and not need["shares"], kept, 0),
        "dense": (True, square, dense_bytes),
    }
    fits = [name for name, (can, _, extra) in able.items() if can and extra <= need["free"]]
    best = [name for name in fits if name not in ("tiles", "dense")]
    return min(best, key=lambda name: able[name][1:]) if best else [*fits, "none"][0]
