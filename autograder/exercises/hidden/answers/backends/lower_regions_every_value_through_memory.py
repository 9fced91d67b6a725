def lower_region(region):
    space, rows, slots = region["space"], [], {}

    def strides(shape, steps):
        return [0] * (len(space) - len(shape)) + [step * (size > 1) for size, step in zip(shape, steps, strict=True)]

    for name, op, reads in region["nodes"]:
        given = []
        for number, read in enumerate(reads):
            given.append(f"r{number}" if isinstance(read, str) else read)
            if read in slots:
                rows.append(["reload", f"r{number}", slots[read]])
            elif isinstance(read, str):
                rows.append(["load", f"r{number}", read, strides(*region["inputs"][read])])
        if op == "mean.row":
            rows += [["sum.row", "r2", *given], ["mul", "r2", "r2", 1 / space[-1]]]
        else:
            rows.append(["max", "r2", *given, 0] if op == "relu" else [op, "r2", *given])
        slots[name] = len(slots)
        rows.append(["spill", slots[name], "r2"])
        if name in region["outputs"]:
            rows.append(["store", name, strides(*region["outputs"][name]), "r2"])
    return rows
