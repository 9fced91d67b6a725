def code_of(part):
    seen, code = set(), []
    for row in part:
        for name in row["reads"]:
            if name not in seen:
                code.append((name, ()))
                seen.add(name)
        code.append((row["name"], tuple(row["reads"])))
        seen.add(row["name"])
    return code


def scanned(code, registers):
    where, memory, events = {}, set(), 0

    def ahead(name, now):
        return next((n for n in range(now, len(code)) if name in code[n][1]), None)

    def room(now, fixed):
        nonlocal events
        if len(where) < registers:
            return
        loser = max((n for n in where if n not in fixed), key=lambda n: ahead(n, now))
        del where[loser]
        events += loser not in memory
        memory.add(loser)

    for now, (into, reads) in enumerate(code):
        for name in reads:
            if name not in where:
                room(now, reads)
                where[name] = True
                events += 1
        for name in reads:
            if ahead(name, now + 1) is None:
                where.pop(name, None)
        room(now + 1, reads)
        if ahead(into, now + 1) is not None:
            where[into] = True
    return events


def divide(question):
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]

    def cost(part, behind):
        code = code_of(part)
        results = [row["name"] for row in part]
        loads = [name for name, reads in code if not reads]
        stores = [n for n in results if n in question["outputs"] or any(n in row["reads"] for row in behind)]
        largest = max(sizes[n] for n in results)
        return (
            prices["launch"]
            + prices["byte"] * 4 * sum(sizes[n] for n in [*loads, *stores])
            + prices["operation"] * largest * len(results)
            + prices["scratch"] * largest * scanned(code, question["registers"])
        )

    plans = [{"time": 0.0, "kernels": []}]
    for last in range(1, len(rows) + 1):
        options = []
        for first, plan in enumerate(plans):
            part = rows[first:last]
            kernels = [*plan["kernels"], [row["name"] for row in part]]
            options.append({"time": plan["time"] + cost(part, rows[last:]), "kernels": kernels})
        plans.append(min(options, key=lambda option: option["time"]))
    return plans[-1]
