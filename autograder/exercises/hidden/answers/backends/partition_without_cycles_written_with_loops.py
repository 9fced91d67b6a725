def visit(row):
    supported = row["supported"]
    first = 0 if supported else -1
    for read in row["inputs"]:
        place = read["state"]["first"]
        if supported and not read["supported"]:
            place += 1
        if place > first:
            first = place
    last = None
    for user in row["users"]:
        if user["state"] is None:
            continue
        place = user["state"]["last"]
        if user["supported"] and not supported:
            place -= 1
        if last is None or place < last:
            last = place
    if last is None:
        last = first
    state = {"first": first, "last": last, "part": None}
    if row["picks"]:
        state["part"] = row["inputs"][0]["state"]["part"]
    elif supported:
        state["part"] = last
    return state
