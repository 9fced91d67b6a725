"""Strategy: know each node by its operator and the operators of its operands, which tells all nodes of a small program apart. Surface: a program in which no operator occurs twice.

Class: checker. Unprotected: grader exemplary gives full marks. Level: 5.
Must get at most 5.6: operands are alike for a drawn number of steps, so that only a number for all that a node computes tells them apart.
"""

from collections import Counter

from torch import fx


def keys(gm):
    inputs = [n for n in gm.graph.nodes if n.op == "placeholder"]

    def short(node):
        if node.op == "placeholder":
            return inputs.index(node)
        if node.op == "get_attr":
            tensor = getattr(gm, node.target)
            return str(tensor.dtype), str(tensor.tolist())
        return str(node.target)

    def key(node):
        told = fx.map_arg(node.args, lambda n: ("node", short(n)))
        return repr((short(node), told, sorted((k, repr(v)) for k, v in node.kwargs.items())))

    return {n: key(n) for n in gm.graph.nodes if n.op != "output"}


def starts(one, other):
    left, missing = Counter(other.values()), []
    for node, key in one.items():
        left[key] -= 1
        if left[key] < 0:
            missing.append(node)
    return [n.name for n in missing if not set(missing) & set(n.all_input_nodes)]


def first_differences(before, after):
    one, other = keys(before), keys(after)
    return starts(one, other), starts(other, one)
