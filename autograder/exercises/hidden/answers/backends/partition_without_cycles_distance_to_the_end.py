def visit(row):
    def step(before, after):
        return 1 if after["supported"] and not before["supported"] else 0

    done = [r["state"]["done"] + step(r, row) for r in row["inputs"]]
    done = max(done) if done else int(row["supported"]) - 1
    spare = [u["state"]["done"] + u["state"]["spare"] - step(row, u) - done for u in row["users"] if u["state"]]
    spare = min(spare) if spare else 0
    part = done + spare
    if row["picks"]:
        part = row["inputs"][0]["state"]["part"]
    return dict(done=done, spare=spare, part=part)
