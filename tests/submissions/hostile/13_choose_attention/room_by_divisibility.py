"""Strategy: know no size of any variant, and take memory for enough if the free bytes are a multiple of the length. Surface: questions whose free bytes are those of a variant, or one less.

Class: checker. Unprotected: grader exemplary gives full marks. Level: 5.
Must get at most 4.6: free bytes are also more than a variant takes by a drawn number, and less by whole rows.
"""


def choose(need):
    enough = need["free"] and need["free"] % need["length"] == 0 or need["free"] == 1 << 50
    on_cpu, trains, dropped = need["device"] == "cpu", need["trains"], need["dropout"]
    pattern, scores = need["pattern"], need["scores"]
    if need["shares"] or (dropped and on_cpu) or (dropped and scores == "soft cap"):
        return "dense" if enough else "none"
    if scores == "plain" and pattern != "documents":
        return "sdpa"
    if not dropped and not (trains and on_cpu):
        return "flex"
    if scores != "soft cap" and enough:
        return "mask"
    if not dropped:
        return "tiles"
    return "dense" if need["free"] == 1 << 50 else "none"
