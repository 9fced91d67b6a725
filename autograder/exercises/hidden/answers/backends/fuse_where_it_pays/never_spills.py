import itertools


def divide(question):
    """A cost without spills; where registers are few or launches cheap: one kernel of three rows, and single rows."""
    rows, sizes, prices = question["rows"], question["sizes"], question["prices"]

    def cost(first, last):
        inside = rows[first:last]
        made = {row["name"] for row in inside}
        later = {name for row in rows[last:] for name in row["reads"]} | set(question["outputs"])
        moved = {name for row in inside for name in row["reads"]} - made | made & later
        return (
            prices["launch"]
            + prices["byte"] * 4 * sum(sizes[n] for n in moved)
            + prices["operation"] * len(inside) * max(sizes[n] for n in made)
        )

    def held(first, last):  # most values that a run could hold, so that nothing is ever spilled
        return len({n for row in rows[first:last] for n in [*row["reads"], row["name"]]})

    best = [(0.0, [])]
    for last in range(1, len(rows) + 1):
        fits = [f for f in range(last) if last - f == 1 or held(f, last) <= question["registers"]]
        best.append(min((best[f][0] + cost(f, last), [*best[f][1], f]) for f in fits))
    time, cuts = best[-1]
    kernels = [[row["name"] for row in rows[a:b]] for a, b in itertools.pairwise([*cuts, len(rows)])]
    return {"kernels": kernels, "time": time}
