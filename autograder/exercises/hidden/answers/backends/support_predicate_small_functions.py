def tensors(node):
    return [value for value in node["inputs"] if not isinstance(value, (bool, int, float))]


def dtype_is_taken(sheet, node):
    return not {t["dtype"] for t in tensors(node) + [node["result"]]}.difference(sheet["dtypes"])


def dtypes_agree(node):
    first, *rest = [t["dtype"] for t in tensors(node)]
    return rest.count(first) == len(rest)


def rank_fits(limit, node):
    return all(t["rank"] < limit + 1 for t in tensors(node) + [node["result"]])


def arguments_fit(sheet, node):
    for name, value in node["arguments"].items():
        if name in sheet["only"] and sheet["only"][name] != value:
            return False
    return True


def refusal(question):
    target, node = question["target"], question["node"]
    sheet = target["operators"].get(node["op"])
    if not sheet:
        return "operator"
    if not node["result"]:
        return "result"
    if not dtype_is_taken(sheet, node):
        return "dtype"
    if not dtypes_agree(node):
        return "mixed"
    if not rank_fits(target["rank"], node):
        return "rank"
    return "" if arguments_fit(sheet, node) else "argument"
