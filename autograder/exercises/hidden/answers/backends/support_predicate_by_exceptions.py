class Refused(Exception):
    pass


def require(held, rule):
    if not held:
        raise Refused(rule)


def look(target, op, inputs, result, arguments):
    require(op in target["operators"], "operator")
    require(result, "result")
    sheet = target["operators"][op]
    operands = [value for value in inputs if hasattr(value, "keys")]
    for tensor in operands + [result]:
        require(sheet["dtypes"].count(tensor["dtype"]), "dtype")
    for a, b in zip(operands, operands[1:]):
        require(a["dtype"] == b["dtype"], "mixed")
    for tensor in operands + [result]:
        require(tensor["rank"] <= target["rank"], "rank")
    for name, value in sheet["only"].items():
        require(name not in arguments or arguments[name] == value, "argument")


def refusal(question):
    try:
        look(question["target"], **question["node"])
    except Refused as refused:
        return refused.args[0]
    return ""
