def scratch_in(part, registers):
    last_read = {n: place for place, row in enumerate(part) for n in row["reads"]}
    held, spilled, events = {}, set(), 0
    for place, row in enumerate(part):
        for name, start in [*((n, place) for n in row["reads"]), (row["name"], place + 1)]:
            for old in [n for n in held if last_read.get(n, -1) < start]:
                del held[old]
            if name in held:
                continue
            if len(held) == registers:
                away = [n for n in held if n not in row["reads"]]
                ahead = {n: min(p for p in range(start, len(part)) if n in part[p]["reads"]) for n in away}
                out = max(away, key=ahead.__getitem__)
                del held[out]
                events += out not in spilled
                spilled |= {out}
            events += name in spilled
            held[name] = True
    return events


def divide(question):
    rows, sizes, prices, known = question["rows"], question["sizes"], question["prices"], {}

    def time_of(first, last):
        if (first, last) not in known:
            part = rows[first:last]
            mine = {row["name"]: sizes[row["name"]] for row in part}
            outside = {n: sizes[n] for row in part for n in row["reads"] if n not in mine}
            read = {n for row in rows[last:] for n in row["reads"]}.union(question["outputs"])
            stored = {n: size for n, size in mine.items() if n in read}
            moved = 4 * (sum(outside.values()) + sum(stored.values()))
            work = prices["operation"] * len(part) + prices["scratch"] * scratch_in(part, question["registers"])
            known[first, last] = prices["launch"] + prices["byte"] * moved + max(mine.values()) * work
        return known[first, last]

    best = [float("inf"), []]
    reached = {}

    def go(first, spent, ends):
        if spent >= min(best[0], reached.get(first, float("inf"))):
            return
        reached[first] = spent
        if first == len(rows):
            best[:] = [spent, ends]
            return
        for last in range(len(rows), first, -1):
            go(last, spent + time_of(first, last), [*ends, last])

    go(0, 0.0, [])
    kernels, first = [], 0
    for last in best[1]:
        kernels.append([row["name"] for row in rows[first:last]])
        first = last
    return {"kernels": kernels, "time": best[0]}
