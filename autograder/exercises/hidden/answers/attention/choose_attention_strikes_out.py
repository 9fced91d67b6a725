def choose(need):
    left = ["sdpa", "flex", "mask", "tiles", "dense"]
    square = need["length"] ** 2
    sizes = {"mask": square, "dense": 8 * square * need["batch"] * need["heads"]}
    if need["scores"] == "alibi":
        sizes["mask"] = 4 * square * need["heads"]
    strikes = {
        "sdpa": [need["scores"] != "plain", need["pattern"] == "documents"],
        "flex": [need["dropout"] > 0, need["trains"] and need["device"] == "cpu"],
        "mask": [need["scores"] == "soft cap"],
        "tiles": [need["dropout"] > 0],
        "dense": [],
    }
    for name in ("sdpa", "mask", "flex", "tiles"):
        strikes[name].append(need["shares"])
    for name in ("sdpa", "mask"):
        strikes[name].append(need["dropout"] > 0 and need["device"] == "cpu")
    left = [name for name in left if not any(strikes[name]) and sizes.get(name, 0) <= need["free"]]
    return [*left, "none"][0]
