import itertools


def spills_and_reloads(part, registers):
    trace, at, live, slots, events = [n for row in part for n in [*row["reads"], None]], 0, [], [], 0

    def distance(name):
        return trace.index(name, at) if name in trace[at:] else None

    def enter(name, fixed):
        nonlocal live, events
        live = [n for n in live if distance(n) is not None]
        if name in live:
            return
        if len(live) == registers:
            loser = max((n for n in live if n not in fixed), key=distance)
            live.remove(loser)
            if loser not in slots:
                slots.append(loser)
                events += 1
        events += slots.count(name)
        live.append(name)

    for row in part:
        for name in row["reads"]:
            enter(name, row["reads"])
        at += len(row["reads"]) + 1
        enter(row["name"], row["reads"])
    return events


def kernel_ns(question, first, last):
    part, size, price = question["rows"][first:last], question["sizes"], question["prices"]
    own, total = {row["name"] for row in part}, price["launch"]
    needed = {*question["outputs"], *(n for row in question["rows"][last:] for n in row["reads"])}
    for name in {n for row in part for n in row["reads"]} - own:
        total += 4 * size[name] * price["byte"]
    for name in own & needed:
        total += 4 * size[name] * price["byte"]
    widest = max(size[name] for name in own)
    total += widest * len(part) * price["operation"]
    return total + widest * spills_and_reloads(part, question["registers"]) * price["scratch"]


def divide(question):
    count = len(question["rows"])
    table = {(a, b): kernel_ns(question, a, b) for b in range(1, count + 1) for a in range(b)}
    best = {0: (0.0, (0,))}
    for b in range(1, count + 1):
        best[b] = min((best[a][0] + table[a, b], (*best[a][1], b)) for a in range(b))
    time, ends = best[count]
    names = [row["name"] for row in question["rows"]]
    return {"kernels": [names[a:b] for a, b in itertools.pairwise(ends)], "time": time}
