"""Strategy: know how many matrices a variant holds for each head but for a factor, and take memory for enough if the free bytes are whole matrices for all heads. Surface: questions whose free bytes are those of a variant, or a few matrices less.

Class: checker. Unprotected: grader exemplary gives full marks. Level: 5.
Must get at most 5.6: free bytes are also some quarters of what a variant takes.
"""


def choose(need):
    square, heads = need["length"] ** 2, need["heads"]
    left, rest = divmod(need["free"], square)
    plenty = need["free"] == 1 << 50

    def enough(group):
        return plenty or (left > 0 and left % group == 0 and rest < need["length"])

    on_cpu, trains, dropped = need["device"] == "cpu", need["trains"], need["dropout"]
    pattern, scores = need["pattern"], need["scores"]
    if need["shares"] or (dropped and on_cpu) or (dropped and scores == "soft cap"):
        return "dense" if enough(need["batch"] * heads) else "none"
    if scores == "plain" and pattern != "documents":
        return "sdpa"
    if not dropped and not (trains and on_cpu):
        return "flex"
    if scores != "soft cap" and enough(4 * heads if scores == "alibi" else 5):
        return "mask"
    if not dropped:
        return "tiles"
    return "dense" if plenty else "none"
