POINTWISE = ("mul", "add", "tanh", "exp", "relu")


def read_joint(rows: list[dict]) -> dict:
    """Say what is saved, why, and what could be computed again; about 15 lines."""
    forward = {row["name"]: row for row in rows if row["part"] == "forward"}
    backward = [row for row in rows if row["part"] == "backward"]
    why = {}
    for name in forward:
        readers = [row["name"] for row in backward if name in row["args"]]
        if readers:
            why[name] = readers[0]
    inputs = {row["name"] for row in rows if row["op"] == "input"}
    again = []
    for name in why:
        there = inputs | (set(why) - {name})
        if forward[name]["op"] in POINTWISE and set(forward[name]["args"]) <= there:
            again.append(name)
    total = sum(forward[name]["bytes"] for name in why)
    return {"saved": list(why), "bytes": total, "why": why, "again": again}
