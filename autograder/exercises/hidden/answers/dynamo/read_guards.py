COMPARE = {"==": int.__eq__, "!=": int.__ne__, "<=": int.__le__, ">=": int.__ge__}


def size_of(side, call):
    """A side of SHAPE_ENV as a number; -1 where the tensor has no such dimension."""
    if isinstance(side, int):
        return side
    return dict(enumerate(call[side[0]]["size"])).get(side[1], -1)


def explain_recompile(question: dict) -> dict:
    """Say which entry a call reuses, or why none; about 20 lines, with a function for one guard."""
    call, failed, opens = question["call"], [], []

    def holds(guard):
        if guard["kind"] == "SHAPE_ENV":
            return COMPARE[guard["op"]](size_of(guard["left"], call), size_of(guard["right"], call))
        value = call[guard["name"]]
        if guard["kind"] == "TYPE_MATCH":
            return type(value).__name__ == guard["type"]
        if guard["kind"] == "EQUALS_MATCH":
            return type(value) is type(guard["value"]) and value == guard["value"]
        fits = len(value["size"]) == len(guard["size"])
        fits = fits and all(g in (None, s) for g, s in zip(guard["size"], value["size"], strict=False))
        return fits and all(value[fact] == guard[fact] for fact in ("dtype", "requires_grad"))

    for number, guards in enumerate(question["entries"]):
        first = next((i for i, guard in enumerate(guards) if not holds(guard)), None)
        if first is None:
            return {"entry": number, "failed": failed, "opens": []}
        failed.append(first)
    for guard in (g for g in question["entries"][-1] if g["kind"] == "TENSOR_MATCH"):
        now = call[guard["name"]]["size"]
        if len(now) == len(guard["size"]):
            opens += [[guard["name"], d] for d, old in enumerate(guard["size"]) if old not in (None, now[d])]
    return {"entry": None, "failed": failed, "opens": opens}
