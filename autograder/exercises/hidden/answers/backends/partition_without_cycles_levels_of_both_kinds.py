# even levels are parts of the target, odd ones lie between them
def level(row, at):
    return at + (at % 2 == row["supported"])


def visit(row):
    begin = 0 if row["supported"] else -1
    low = max([begin, *(level(row, read["state"]["low"]) for read in row["inputs"])])
    highs = [user["state"]["high"] for user in row["users"] if user["state"] is not None]
    high = min(highs, default=low)
    if highs and high % 2 == row["supported"]:
        high -= 1
    state = {"low": low, "high": high, "part": high // 2 if row["supported"] else None}
    if row["picks"] and row["supported"]:
        state["part"] = row["inputs"][0]["state"]["part"]
    return state
