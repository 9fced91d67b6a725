def visit(row):
    before = [(read["state"]["early"], read["supported"]) for read in row["inputs"]]
    starts = 0 if row["supported"] else -1
    early = max((part + (row["supported"] and not taken) for part, taken in before), default=starts)
    after = [(user["state"]["late"], user["supported"]) for user in row["users"] if user["state"]]
    late = row["state"]["late"] if row["state"] else early
    if after and all(part - (taken and not row["supported"]) > late for part, taken in after):
        late += 1
    part = row["inputs"][0]["state"]["part"] if row["picks"] else late
    return {"early": early, "late": late, "part": part if row["supported"] else None}
