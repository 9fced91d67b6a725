def choose(need):
    n2 = need["length"] ** 2
    fallback = "dense" if need["free"] >= 8 * need["batch"] * need["heads"] * n2 else "none"
    bias = 4 * need["heads"] * n2 if need["scores"] == "alibi" else n2
    masked = "mask" if bias <= need["free"] else ""
    match need:
        case {"shares": True}:
            return fallback
        case {"device": "cpu", "dropout": p} if p:
            return fallback
        case {"scores": "plain", "pattern": "all" | "causal"}:
            return "sdpa"
        case {"device": "cuda", "dropout": p, "scores": kind} if p:
            return fallback if kind == "soft cap" else masked or fallback
        case {"device": "cpu", "trains": True, "scores": "soft cap"}:
            return "tiles"
        case {"device": "cpu", "trains": True}:
            return masked or "tiles"
    return "flex"
