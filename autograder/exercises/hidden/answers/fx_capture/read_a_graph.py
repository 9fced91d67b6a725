def read_graph(rows: list[dict]) -> dict:
    """Answer five questions about a graph; a good answer has about 20 lines."""
    by_name = {row["name"]: row for row in rows}
    users = {name: {row["name"] for row in rows if name in row["args"]} for name in by_name}
    alive, todo = set(), [row["name"] for row in rows if row["op"] == "output"]
    while todo:
        name = todo.pop()
        if name not in alive:
            alive.add(name)
            todo.extend(by_name[name]["args"])
    depth = {}
    for row in rows:
        below = [depth[name] for name in row["args"] if name in depth]
        if below or row["op"] == "placeholder":
            depth[row["name"]] = 1 + max(below, default=0)
    return {
        "inputs": [row["name"] for row in rows if row["op"] == "placeholder"],
        "leaf_modules": [row["name"] for row in rows if row["op"] == "call_module"],
        "two_users": [row["name"] for row in rows if len(users[row["name"]]) == 2],
        "dead": [r["name"] for r in rows if r["name"] not in alive and r["op"] not in ("placeholder", "output")],
        "longest_path": next((depth.get(row["name"], 0) for row in rows if row["op"] == "output"), 0),
    }
