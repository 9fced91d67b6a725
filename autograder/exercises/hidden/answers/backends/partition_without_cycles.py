def visit(row: dict) -> dict:
    """Return the state of one row, with its `part`; about 10 lines."""
    before = [(read["state"]["early"], read["supported"]) for read in row["inputs"]]
    starts = 0 if row["supported"] else -1
    early = max((part + (row["supported"] and not taken) for part, taken in before), default=starts)
    after = [(user["state"]["late"], user["supported"]) for user in row["users"] if user["state"]]
    late = min((part - (taken and not row["supported"]) for part, taken in after), default=early)
    part = row["inputs"][0]["state"]["part"] if row["picks"] else late
    return {"early": early, "late": late, "part": part if row["supported"] else None}
