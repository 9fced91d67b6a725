def choose(need):
    tokens = need["documents"] if need["pattern"] == "documents" else [need["length"]]
    every = need["length"] * need["length"]
    ends = [sum(tokens[: n + 1]) for n in range(len(tokens))]
    spans = [(128 * ((end - n) // 128), end) for n, end in zip(tokens, ends, strict=True)]
    grid = [
        any(a <= q < b and a <= k < b for a, b in spans) and (k <= q or need["pattern"] == "all")
        for q in range(0, need["length"], 128)
        for k in range(0, need["length"], 128)
    ]
    cpu = need["device"] == "cpu"
    table = [
        (0, 0, 0, 0, "sdpa"),
        (0, every, every * (4 * need["heads"] if need["scores"] == "alibi" else 5), 1, "mask"),
        (0, sum(grid) * 128 * 128, 0, 2, "flex"),
        (1, 0, 0, 3, "tiles"),
        (2, 0, 2 * 4 * need["batch"] * need["heads"] * every, 4, "dense"),
        (3, 0, 0, 5, "none"),
    ]
    cannot = set()
    if need["pattern"] == "documents" or need["scores"] != "plain":
        cannot.add("sdpa")
    if need["scores"] == "soft cap":
        cannot.add("mask")
    if need["dropout"]:
        cannot |= {"flex", "tiles"} | ({"sdpa", "mask"} if cpu else set())
    if cpu and need["trains"]:
        cannot.add("flex")
    if need["shares"]:
        cannot |= {"sdpa", "mask", "flex", "tiles"}
    return min(row for row in table if row[4] not in cannot and row[2] <= need["free"])[4]
