def divide(question: dict) -> dict:
    """Return {"kernels": lists of names, "time": nanoseconds}; about 25 lines."""
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]

    def cost(first, last):
        inside, held, spilled, scratch = rows[first:last], set(), set(), 0
        made = {row["name"] for row in inside}
        later = {name for row in rows[last:] for name in row["reads"]} | set(question["outputs"])
        moved = {name for row in inside for name in row["reads"]} - made | made & later
        for place, row in enumerate(inside):
            for name in [*row["reads"], row["name"]]:
                rest = inside[place + (name == row["name"]) :]
                uses = {n: [p for p, reader in enumerate(rest) if n in reader["reads"]] for n in held}
                held = {n for n in held if uses[n]}
                if name not in held and len(held) == question["registers"]:
                    out = max(held - set(row["reads"]), key=uses.get)
                    scratch, held, spilled = scratch + (out not in spilled), held - {out}, spilled | {out}
                scratch, held = scratch + (name in spilled and name not in held), held | {name}
        each = prices["operation"] * len(inside) + prices["scratch"] * scratch
        moving = prices["byte"] * 4 * sum(sizes[name] for name in moved)
        return prices["launch"] + moving + each * max(sizes[name] for name in made)

    best = [(0.0, [])]
    for last in range(1, len(rows) + 1):
        best.append(min((best[first][0] + cost(first, last), [*best[first][1], first]) for first in range(last)))
    time, cuts = best[-1]
    kernels = [[row["name"] for row in rows[a:b]] for a, b in itertools.pairwise([*cuts, len(rows)])]
    return {"kernels": kernels, "time": time}
