from functools import reduce


def visit(row):
    taken = row["supported"]
    forward = lambda so_far, read: max(so_far, read["state"]["a"] + (1 if taken > read["supported"] else 0))
    a = reduce(forward, row["inputs"], -1 + taken)
    known = list(filter(lambda user: user["state"], row["users"]))
    backward = lambda so_far, user: min(so_far, user["state"]["b"] - (1 if user["supported"] > taken else 0))
    b = reduce(backward, known, 10**9) if known else a
    if row["picks"]:
        source = row["inputs"][0]["state"]
        return {"a": a, "b": b, "part": source["part"]}
    return {"a": a, "b": b, "part": b if taken else None}
