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


# %% classes as tuples of small numbers
def first_differences(before, after):
    ids = {}

    def frozen(value, of):
        if isinstance(value, fx.Node):
            return ("node", of[value])
        if isinstance(value, (list, tuple)):
            return ("many", *(frozen(each, of) for each in value))
        if isinstance(value, dict):
            return ("named", *sorted((key, frozen(each, of)) for key, each in value.items()))
        return (type(value).__name__, repr(value))

    def numbered(module):
        of = {}
        for place, node in enumerate(module.graph.nodes):
            if node.op == "placeholder":
                key = ("placeholder", place)
            elif node.op == "get_attr":
                tensor = getattr(module, node.target)
                key = ("constant", str(tensor.dtype), tuple(tensor.shape), tuple(tensor.flatten().tolist()))
            else:
                key = (node.op, str(node.target), frozen(node.args, of), frozen(node.kwargs, of))
            of[node] = ids.setdefault(key, len(ids))
        return of

    def lonely(mine, other):
        free = Counter(other.values())
        found = []
        for node in mine:
            if free[mine[node]]:
                free[mine[node]] -= 1
            else:
                found.append(node)
        return {node.name for node in found if not any(each in found for each in node.all_input_nodes)}

    first, second = numbered(before), numbered(after)
    return sorted(lonely(first, second)), sorted(lonely(second, first))


# %% partners are removed from a list
def first_differences(before, after):
    table = []

    def same_class(key):
        if key not in table:
            table.append(key)
        return table.index(key)

    def walk(module):
        classes, inputs = {}, []
        for node in module.graph.nodes:
            named = sorted((name, str(fx.map_arg(v, lambda n: f"%{classes[n]}%"))) for name, v in node.kwargs.items())
            if node.op == "placeholder":
                inputs.append(node)
                key = ["input", len(inputs)]
            elif node.op == "get_attr":
                held = getattr(module, node.target)
                key = ["held", held.dtype, held.shape, held.tolist()]
            else:
                key = [node.op, node.target, str(fx.map_arg(node.args, lambda n: f"%{classes[n]}%")), named]
            classes[node] = same_class(key)
        return classes

    left, right = walk(before), walk(after)

    def begins(one, other):
        pool, missing = list(other.values()), []
        for node, number in one.items():
            try:
                pool.remove(number)
            except ValueError:
                missing.append(node)
        return [n.name for n in missing if all(m not in missing for m in n.all_input_nodes)]

    return begins(left, right), begins(right, left)


# %% a class that compares
class Seen:
    def __init__(self):
        self.keys = {}

    def of(self, module):
        numbers, place = {}, 0
        for node in module.graph.nodes:
            parts = [node.op]
            if node.op == "placeholder":
                parts.append(place)
                place += 1
            elif node.op == "get_attr":
                value = getattr(module, node.target).detach()
                parts += [value.dtype, value.shape, value.numpy().tobytes()]
            else:
                parts += [node.target]
                flat = fx.map_arg([node.args, dict(sorted(node.kwargs.items()))], lambda n: ("n", numbers[n]))
                parts.append(repr(flat))
            numbers[node] = self.keys.setdefault(tuple(parts), len(self.keys))
        return numbers


def first_differences(before, after):
    seen = Seen()
    both = [seen.of(before), seen.of(after)]
    result = []
    for mine, theirs in (both, both[::-1]):
        rest = Counter(theirs.values())
        without = set()
        for node, number in mine.items():
            rest.subtract([number])
            if rest[number] < 0:
                without.add(node)
        result.append([node.name for node in mine if node in without and without.isdisjoint(node.all_input_nodes)])
    return result[0], result[1]
