BEFORE = {"print": 0, "log": 0, "item": 1, "value_if": 2}
AFTER = {"item": 1, "value_if": 1}
INSIDE = {"compute": 1, "size_if": 1}


def count_graphs(steps: list[dict]) -> dict:
    """Predict what Dynamo makes of a program; a function that calls itself for bodies helps."""

    def breaks(steps):
        return any(s["do"] in BEFORE or breaks(s.get("body", [])) for s in steps)

    def sizes_of(steps):
        sizes, open_size, since = [], 0, 0
        for number, step in enumerate(steps):
            body, do = step.get("body", []), step["do"]
            if do == "repeat" and breaks(body):
                left = [s["body"] for s in steps[since:] if s["do"] == "call"]
                return sizes + [size for body in left for size in sizes_of(body)]
            if do in BEFORE or breaks(body):
                sizes += [open_size + BEFORE.get(do, 0), *sizes_of(body)]
                open_size, since = AFTER.get(do, 0), number + 1
            else:
                open_size += INSIDE.get(do, 0) + step.get("times", 1) * sum(sizes_of(body))
            sizes = [size for size in sizes if size]
        return sizes + ([open_size] if open_size else [])

    sizes = sizes_of(steps)
    return {"graphs": len(sizes), "sizes": sizes}
