# %% digests in place of numbers
import hashlib


def first_differences(before, after):
    digests = {id(program): _digests(program) for program in (before, after)}
    return tuple(_starts(digests[id(a)], digests[id(b)]) for a, b in ((before, after), (after, before)))


def _digests(program):
    known, position = {}, 0
    for node in program.graph.nodes:
        text = f"{node.op} {node.target} {_told(node.args, known)} "
        for key in sorted(node.kwargs):
            text += f"{key}={_told(node.kwargs[key], known)} "
        if node.op == "placeholder":
            text, position = f"input {position}", position + 1
        elif node.op == "get_attr":
            value = program.get_buffer(node.target)
            text = f"constant {value.dtype} {value.shape} {value.flatten().tolist()}"
        known[node] = hashlib.sha256(text.encode()).hexdigest()
    return known


def _told(value, known):
    if isinstance(value, fx.Node):
        return "%" + known[value]
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_told(each, known) for each in value) + "]"
    return f"{type(value).__name__}:{value}"


def _starts(mine, theirs):
    partners = list(theirs.values())
    alone = []
    for node, digest in mine.items():
        if digest in partners:
            partners.remove(digest)
        else:
            alone.append(node)
    return [node.name for node in alone if all(each not in alone for each in node.all_input_nodes)]


# %% pairs of nodes
def first_differences(before, after):
    classes = {}

    def number(program, node, seen):
        def operand(each):
            return ("node", seen[each])

        key = [node.op, str(node.target), fx.map_arg(node.args, operand)]
        key += [(name, fx.map_arg(node.kwargs[name], operand)) for name in sorted(node.kwargs)]
        if node.op == "placeholder":
            key = ["input", sum(each.op == "placeholder" for each in seen)]
        if node.op == "get_attr":
            key = ["constant", str(getattr(program, node.target).dtype), getattr(program, node.target).tolist()]
        return classes.setdefault(str(key), len(classes))

    sides = []
    for program in (before, after):
        seen = {}
        for node in program.graph.nodes:
            seen[node] = number(program, node, seen)
        sides.append(seen)
    mine, theirs = sides
    waiting = {}
    for node, at in theirs.items():
        waiting.setdefault(at, []).append(node)
    pairs = {}
    for node, at in mine.items():
        if waiting.get(at):
            pairs[node] = waiting[at].pop(0)
    matched = set(pairs.values())

    def first(nodes, paired):
        return [n.name for n in nodes if n not in paired and set(n.all_input_nodes) <= set(paired)]

    return [first(mine, pairs), first(theirs, matched)]


# %% copies are numbered
def first_differences(before, after):
    table = {}
    keys = []
    for program in (before, after):
        known, count, mine = {}, Counter(), {}
        places = iter(range(1000))
        for node in program.graph.nodes:
            if node.op == "placeholder":
                key = ("input", next(places))
            elif node.op == "get_attr":
                tensor = getattr(program, node.target)
                key = ("constant", str(tensor.dtype), str(tensor.tolist()))
            else:
                given = fx.map_arg((node.args, node.kwargs), lambda each, known=known: f"<{known[each]}>")
                key = (
                    node.op,
                    str(node.target),
                    repr(given[0]),
                    tuple((k, repr(given[1][k])) for k in sorted(given[1])),
                )
            known[node] = table.setdefault(key, len(table))
            count[known[node]] += 1
            mine[node] = (known[node], count[known[node]])
        keys.append(mine)
    found = []
    for mine, theirs in (keys, keys[::-1]):
        others = set(theirs.values())
        alone = {node for node, key in mine.items() if key not in others}
        found.append([node.name for node in mine if node in alone and not alone & set(node.all_input_nodes)])
    return tuple(found)
