def rules(target, node):
    yield "operator", node["op"] in target["operators"]
    yield "result", node["result"] is not None
    sheet = target["operators"][node["op"]]
    tensors = []
    for value in node["inputs"]:
        if not isinstance(value, (int, float)):
            tensors.append(value)
    dtypes = [tensor["dtype"] for tensor in tensors]
    yield "dtype", all(d in sheet["dtypes"] for d in dtypes + [node["result"]["dtype"]])
    yield "mixed", all(d == dtypes[0] for d in dtypes)
    ranks = [tensor["rank"] for tensor in tensors] + [node["result"]["rank"]]
    yield "rank", not any(r > target["rank"] for r in ranks)
    for name in node["arguments"]:
        if name in sheet["only"]:
            yield "argument", node["arguments"][name] == sheet["only"][name]


def refusal(question):
    for name, held in rules(question["target"], question["node"]):
        if not held:
            return name
    return ""
