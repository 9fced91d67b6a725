def find_violations(program):
    first, second = program["first"], list(program["second"])
    rows, mine, theirs, state = [], [], [], []
    for old in first:
        line = old["line"]
        at = next((i for i, new in enumerate(second) if new["line"] == line), None)
        if at is None:
            rows.append([line, "first call only"])
            state += old["writes"]
            mine += old["writes"]
            continue
        new = second.pop(at)
        if new["host_read"]:
            rows.append([line, "host read"])
        if new["own_generator"]:
            rows.append([line, "random state"])
        if new["numbers"] != old["numbers"]:
            rows.append([line, "stale number"])
        if new["shapes"] != old["shapes"]:
            rows.append([line, "two shapes"])
        for a, b in zip(old["reads"], new["reads"], strict=True):
            if a != b and b not in theirs and b not in state:
                rows.append([line, "rebound input"])
        mine += old["writes"]
        theirs += new["writes"]
    return rows
