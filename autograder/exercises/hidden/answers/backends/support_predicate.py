def refusal(question: dict) -> str:
    """Return the first rule that the node breaks, or ""; about 15 lines."""
    target, node = question["target"], question["node"]
    if node["op"] not in target["operators"]:
        return "operator"
    if node["result"] is None:
        return "result"
    sheet = target["operators"][node["op"]]
    inputs = [value for value in node["inputs"] if isinstance(value, dict)]
    tensors = [*inputs, node["result"]]
    if any(tensor["dtype"] not in sheet["dtypes"] for tensor in tensors):
        return "dtype"
    if len({tensor["dtype"] for tensor in inputs}) > 1:
        return "mixed"
    if any(tensor["rank"] > target["rank"] for tensor in tensors):
        return "rank"
    if any(node["arguments"].get(name, value) != value for name, value in sheet["only"].items()):
        return "argument"
    return ""
