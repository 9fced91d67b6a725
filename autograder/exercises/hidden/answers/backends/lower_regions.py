def next_use(nodes: list, name: str, now: int) -> int:
    """Return the number of the first node, from `now` on, that reads `name`; the number of nodes if none does."""
    return next((at for at in range(now, len(nodes)) if name in nodes[at][2]), len(nodes))


def lower_region(region: dict) -> list[list]:
    """Return the instructions of a kernel that computes the region; about 25 lines."""
    space, inputs, nodes, outputs = (region[key] for key in ("space", "inputs", "nodes", "outputs"))
    rows, home, slots, free = [], {}, {}, [f"r{number}" for number in range(region["registers"])]

    def strides(name):
        shape, steps = {**inputs, **outputs}[name]
        return [0] * (len(space) - len(shape)) + [step * (size > 1) for size, step in zip(shape, steps, strict=True)]

    def take(now, needed):
        if not free:
            loser = max((n for n in home if n not in needed), key=lambda n: (next_use(nodes, n, now), n in inputs))
            free.append(home.pop(loser))
            if loser not in inputs and loser not in slots and next_use(nodes, loser, now) < len(nodes):
                rows.append(["spill", slots.setdefault(loser, len(slots)), free[-1]])
        return free.pop()

    for now, (name, op, reads) in enumerate(nodes):
        for read in reads:
            if isinstance(read, str) and read not in home:
                home[read] = into = take(now, reads)
                rows.append(["reload", into, slots[read]] if read in slots else ["load", into, read, strides(read)])
        given = [home.get(read, read) for read in reads]
        free += [home.pop(old) for old in list(home) if next_use(nodes, old, now + 1) == len(nodes)]
        home[name] = into = take(now + 1, [])
        rows += {"mean.row": [["sum.row", into, *given], ["mul", into, into, 1 / space[-1]]],
                 "relu": [["max", into, *given, 0]]}.get(op, [[op, into, *given]])  # fmt: skip
        rows += [["store", name, strides(name), into]] if name in outputs else []
    return rows
