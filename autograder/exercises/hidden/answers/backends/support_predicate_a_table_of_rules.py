RULES = {
    "dtype": lambda t, s, n, i: {x["dtype"] for x in [*i, n["result"]]} <= set(s["dtypes"]),
    "mixed": lambda t, s, n, i: len({x["dtype"] for x in i}) < 2,
    "rank": lambda t, s, n, i: max(x["rank"] for x in [*i, n["result"]]) <= t["rank"],
    "argument": lambda t, s, n, i: {**s["only"], **n["arguments"]}.items() >= s["only"].items(),
}


def refusal(question):
    t, n = question["target"], question["node"]
    s = t["operators"].get(n["op"])
    if s is None:
        return "operator"
    if n["result"] is None:
        return "result"
    i = [x for x in n["inputs"] if type(x) is dict]
    return next((name for name, holds in RULES.items() if not holds(t, s, n, i)), "")
