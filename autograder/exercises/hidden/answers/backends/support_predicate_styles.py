# %% a table of rules
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


# %% one rule after the other
def rules(target, node):
    yield "operator", node["op"] in target["operators"]
    yield "result", node["result"] is not None
    sheet = target["operators"][node["op"]]
    tensors = []
    for value in node["inputs"]:
        if not isinstance(value, (int, float)):
            tensors.append(value)
    dtypes = [tensor["dtype"] for tensor in tensors]
    yield "dtype", all(d in sheet["dtypes"] for d in [*dtypes, node["result"]["dtype"]])
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


# %% by exceptions
class RefusedError(Exception):
    pass


def require(held, rule):
    if not held:
        raise RefusedError(rule)


def look(target, op, inputs, result, arguments):
    require(op in target["operators"], "operator")
    require(result, "result")
    sheet = target["operators"][op]
    operands = [value for value in inputs if hasattr(value, "keys")]
    for tensor in [*operands, result]:
        require(sheet["dtypes"].count(tensor["dtype"]), "dtype")
    for tensor in operands:
        require(tensor["dtype"] == operands[0]["dtype"], "mixed")
    for tensor in [*operands, result]:
        require(tensor["rank"] <= target["rank"], "rank")
    for name, value in sheet["only"].items():
        require(name not in arguments or arguments[name] == value, "argument")


def refusal(question):
    try:
        look(question["target"], **question["node"])
    except RefusedError as refused:
        return refused.args[0]
    return ""


# %% matched
def refusal(question):
    target = question["target"]
    match question["node"]:
        case {"op": op} if op not in target["operators"]:
            return "operator"
        case {"result": None}:
            return "result"
        case {"op": op, "inputs": inputs, "result": result, "arguments": arguments}:
            dtypes, only = target["operators"][op]["dtypes"], target["operators"][op]["only"]
    read = []
    for value in inputs:
        match value:
            case {"dtype": dtype, "rank": rank}:
                read.append((dtype, rank))
    every = [*read, (result["dtype"], result["rank"])]
    if not all(dtype in dtypes for dtype, _ in every):
        return "dtype"
    if len({dtype for dtype, _ in read}) == 2:
        return "mixed"
    if sorted(rank for _, rank in every)[-1] > target["rank"]:
        return "rank"
    if [
        name
        for name in only
        if name in arguments and arguments[name] is not only[name] and arguments[name] != only[name]
    ]:
        return "argument"
    return ""


# %% all rules, then the first
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
    everything = given if result is None else [*given, result]
    for tensor in everything:
        if tensor["dtype"] not in sheet["dtypes"]:
            found.add("dtype")
        if tensor["rank"] > target["rank"]:
            found.add("rank")
    if given and any(tensor["dtype"] != given[0]["dtype"] for tensor in given):
        found.add("mixed")
    found |= {"argument" for name, value in node["arguments"].items() if sheet["only"].get(name, value) != value}
    return min(found, key=ORDER.index) if found else ""


# %% small functions
def tensors(node):
    return [value for value in node["inputs"] if not isinstance(value, (bool, int, float))]


def dtype_is_taken(sheet, node):
    return not {t["dtype"] for t in [*tensors(node), node["result"]]}.difference(sheet["dtypes"])


def dtypes_agree(node):
    first, *rest = [t["dtype"] for t in tensors(node)]
    return rest.count(first) == len(rest)


def rank_fits(limit, node):
    return all(t["rank"] < limit + 1 for t in [*tensors(node), node["result"]])


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


# %% a generator of objections
def objections(node, sheet, most):
    tensors = [each for each in node["inputs"] if type(each) is dict]
    kinds = [each["dtype"] for each in tensors]
    result = node["result"]
    if not {*kinds, result["dtype"]}.issubset(sheet["dtypes"]):
        yield "dtype"
    if kinds and kinds.count(kinds[0]) != len(kinds):
        yield "mixed"
    if max(each["rank"] for each in [*tensors, result]) > most:
        yield "rank"
    for name, wanted in sheet["only"].items():
        if name in node["arguments"] and node["arguments"][name] != wanted:
            yield "argument"


def refusal(question):
    target, node = question["target"], question["node"]
    sheet = target["operators"].get(node["op"])
    if not sheet:
        return "operator"
    if not node["result"]:
        return "result"
    return next(objections(node, sheet, target["rank"]), "")


# %% a class of nodes
class Asked:
    def __init__(self, question):
        self.most, self.sheets = question["target"]["rank"], question["target"]["operators"]
        self.__dict__.update(question["node"])
        self.given = list(filter(lambda value: hasattr(value, "keys"), self.inputs))

    def all_tensors(self, test):
        return all(map(test, [*self.given, self.result]))

    def answer(self):
        sheet = self.sheets.get(self.op, {})
        only = sheet.get("only", {})
        return (
            (not sheet and "operator")
            or (self.result is None and "result")
            or (not self.all_tensors(lambda tensor: tensor["dtype"] in sheet["dtypes"]) and "dtype")
            or (any(tensor["dtype"] != self.given[0]["dtype"] for tensor in self.given) and "mixed")
            or (not self.all_tensors(lambda tensor: tensor["rank"] <= self.most) and "rank")
            or ({**only, **{k: v for k, v in self.arguments.items() if k in only}} != only and "argument")
            or ""
        )


def refusal(question):
    return Asked(question).answer()
