def code_of(region):
    space = region["space"]
    code = []
    for name, op, reads in region["nodes"]:
        for read in reads:
            if read in region["inputs"] and not any(into == read for _, into, _ in code):
                code.append(("load", read, []))
        if op == "mean.row":
            code += [("sum.row", name + ".", reads), ("mul", name, [name + ".", 1 / space[-1]])]
        else:
            code.append(("max", name, [*reads, 0]) if op == "relu" else (op, name, reads))
        if name in region["outputs"]:
            code.append(("store", None, [name]))
    return code


def strides(space, shape, steps):
    return [0] * (len(space) - len(shape)) + [step * (size > 1) for size, step in zip(shape, steps, strict=True)]


def lower_region(region):
    space, home, slots, uses, written = region["space"], {}, {}, {}, []
    free, code = list(range(region["registers"] - 1, -1, -1)), code_of(region)
    for position in range(len(code) - 1, -1, -1):
        for value in {read for read in code[position][2] if isinstance(read, str)}:
            uses.setdefault(value, []).append(position)

    def take(needed):
        if free:
            return free.pop()
        loser = max((v for v in home if v not in needed), key=lambda v: uses[v][-1] if uses.get(v) else 9999)
        register = home.pop(loser)
        if loser not in slots:
            slots[loser] = len(slots)
            written.append(["spill", slots[loser], f"r{register}"])
        return register

    for op, into, reads in code:
        needed = {read for read in reads if isinstance(read, str)}
        for value in needed:
            if value not in home:
                home[value] = take(needed)
                written.append(["reload", f"r{home[value]}", slots[value]])
        operands = [f"r{home[read]}" if isinstance(read, str) else read for read in reads]
        for value in needed:
            uses[value].pop()
            if not uses[value]:
                free.append(home.pop(value))
        free.sort(reverse=True)
        if op == "store":
            written.append(["store", reads[0], strides(space, *region["outputs"][reads[0]]), *operands])
            continue
        home[into] = take(needed)
        place = f"r{home[into]}"
        written.append(
            ["load", place, into, strides(space, *region["inputs"][into])] if op == "load" else [op, place, *operands]
        )
        if into not in uses:
            free.append(home.pop(into))
    return written
