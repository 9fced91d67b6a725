ORDER = ["operator", "result", "dtype", "mixed", "rank", "argument"]


def refusal(question):
    target, node, found = question["target"], question["node"], set()
    sheet = target["operators"].get(node["op"], {"dtypes": [], "only": {}})
    result = node["result"]
    if node["op"] not in target["operators"]:
        found.add("operator")
    if result is None:
        found.add("result")
    given = list(filter(lambda value: isinstance(value, dict), node["inputs"]))
    everything = given if result is None else given + [result]
    for tensor in everything:
        if tensor["dtype"] not in sheet["dtypes"]:
            found.add("dtype")
        if tensor["rank"] > target["rank"]:
            found.add("rank")
    if given and any(tensor["dtype"] != given[0]["dtype"] for tensor in given):
        found.add("mixed")
    found |= {"argument" for name, value in node["arguments"].items() if sheet["only"].get(name, value) != value}
    return min(found, key=ORDER.index) if found else ""
