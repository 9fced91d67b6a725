def choose(need):
    square = need["length"] ** 2
    on_cpu, modified = need["device"] == "cpu", need["scores"] != "plain"

    def nothing_fused():
        return need["shares"] or (on_cpu and need["dropout"] > 0)

    def sdpa():
        return not (nothing_fused() or modified or need["pattern"] == "documents")

    def flex():
        return not (nothing_fused() or need["dropout"] or (on_cpu and need["trains"]))

    def mask():
        size = square * 4 * need["heads"] if need["scores"] == "alibi" else square
        return not nothing_fused() and need["scores"] != "soft cap" and size <= need["free"]

    def tiles():
        return not need["shares"] and not need["dropout"]

    def dense():
        return need["free"] >= 8 * need["heads"] * need["batch"] * square

    for able in (sdpa, flex, mask, tiles, dense):
        if able():
            return able.__name__
    return "none"
