def visit(row):
    reads, users, mine = row["inputs"], [u for u in row["users"] if u["state"]], row["supported"]
    lowest = [1 if mine else 0]
    lowest += [r["state"]["range"] // 100000 + (mine and not r["supported"]) for r in reads]
    highest = [u["state"]["range"] % 100000 - (u["supported"] and not mine) for u in users] or [max(lowest)]
    both = 100000 * max(lowest) + min(highest)
    part = reads[0]["state"]["part"] if row["picks"] else min(highest)
    return {"range": both, "part": part if mine else None, "name": row["name"]}
