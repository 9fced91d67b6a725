"""Pair the nodes of two graphs that correspond, by what they compute and not by their names."""

import collections
from collections.abc import Callable, Hashable, Iterator

import torch

from course_lib.graph.nodes import operator_name

WINDOW = 128  # nodes of each graph that are aligned at a time: the time grows with its square
Pairs = dict[torch.fx.Node, torch.fx.Node]  # node before -> node after


def pair_nodes(before: torch.fx.Graph, after: torch.fx.Graph) -> Pairs:
    """Return the nodes of `before` that are still in `after`, each with its counterpart.

    The function first pairs nodes that compute the same value from the inputs. Then it pairs nodes with the same
    uses, from the output upwards. Then it pairs nodes that make the same call in the same order, and finally those
    that differ only in literals. A node is never paired with a node that makes another call.
    """
    pairs: Pairs = {}
    _pair_equal_values(pairs, before, after)
    _pair_from_the_output(pairs, before, after)
    for call in (_exact_call, _call):
        _pair_in_order(pairs, before, after, call)
    return pairs


def operands(node: torch.fx.Node) -> Iterator[tuple[str, object]]:
    """Yield each node and each literal in the arguments of a node, with its position."""
    leaves = torch.utils._pytree.tree_leaves_with_path((dict(enumerate(node.args)), dict(node.kwargs)))
    for path, leaf in leaves:
        yield torch.utils._pytree.keystr(path), leaf


def _pair_equal_values(pairs: Pairs, before: torch.fx.Graph, after: torch.fx.Graph) -> None:
    numbers: dict[Hashable, int] = {}  # what a node computes -> a number for it; equal in both graphs
    waiting: dict[int, collections.deque[torch.fx.Node]] = collections.defaultdict(collections.deque)
    for node, number in _numbered(after, numbers):
        waiting[number].append(node)
    for node, number in _numbered(before, numbers):
        if waiting[number]:
            pairs[node] = waiting[number].popleft()


def _numbered(graph: torch.fx.Graph, numbers: dict[Hashable, int]) -> Iterator[tuple[torch.fx.Node, int]]:
    known: dict[object, int] = {}
    inputs = 0
    for node in graph.nodes:
        values = tuple((place, _literal(leaf, known)) for place, leaf in operands(node))
        key: Hashable = (_call(node), values)
        if node.op == "placeholder":
            key, inputs = ("input", inputs), inputs + 1  # by position: names are free
        known[node] = numbers.setdefault(key, len(numbers))
        yield node, known[node]


def _literal(leaf: object, known: dict[object, int]) -> Hashable:
    if isinstance(leaf, torch.fx.Node):
        return "node", known[leaf]
    return type(leaf).__name__, repr(leaf)  # 1, 1.0 and True differ; NaN equals itself


def _pair_from_the_output(pairs: Pairs, before: torch.fx.Graph, after: torch.fx.Graph) -> None:
    taken = set(pairs.values())
    ends = before.find_nodes(op="output"), after.find_nodes(op="output")
    if all(ends):
        pairs.setdefault(ends[0][0], ends[1][0])
        taken.add(ends[1][0])
    for node in reversed(before.nodes):
        if node not in pairs:
            continue
        theirs = dict(operands(pairs[node]))
        for place, one in operands(node):
            other = theirs.get(place)
            if not (isinstance(one, torch.fx.Node) and isinstance(other, torch.fx.Node)):
                continue
            if one not in pairs and other not in taken and _call(one) == _call(other):
                pairs[one] = other
                taken.add(other)


def _pair_in_order(
    pairs: Pairs, before: torch.fx.Graph, after: torch.fx.Graph, call: Callable[[torch.fx.Node], Hashable]
) -> None:
    taken = set(pairs.values())
    ours = [(call(node), node) for node in before.nodes if node not in pairs]
    theirs = [(call(node), node) for node in after.nodes if node not in taken]
    shared = {key for key, _ in ours} & {key for key, _ in theirs}
    left, right = ([entry for entry in side if entry[0] in shared] for side in (ours, theirs))
    numbers = {key: number for number, key in enumerate(shared)}  # quicker to compare
    for i, j in _in_order([numbers[key] for key, _ in left], [numbers[key] for key, _ in right]):
        pairs[left[i][1]] = right[j][1]


def _in_order(left: list[int], right: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the positions of equal entries, in ascending order on both sides, one window at a time.

    With windows the time grows linearly. Entries that moved further than one window are not found.
    """
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
            continue
        last = max(len(left) - i, len(right) - j) <= WINDOW
        limit = WINDOW if last else WINDOW // 2  # near the end of a window, the result depends on entries after it
        steps = [step for step in _equal_entries(left[i : i + WINDOW], right[j : j + WINDOW]) if max(step) < limit]
        yield from ((i + a, j + b) for a, b in steps)
        a, b = steps[-1] if steps else (limit - 1, limit - 1)
        i, j = (len(left), len(right)) if last else (i + a + 1, j + b + 1)


def _equal_entries(left: list[int], right: list[int]) -> Iterator[tuple[int, int]]:
    """Yield the positions of a longest common subsequence; among several, choose the one whose entries moved least."""
    longest = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]  # its length from position i and position j on
    for i in reversed(range(len(left))):
        here, below = longest[i], longest[i + 1]
        for j in reversed(range(len(right))):
            here[j] = below[j + 1] + 1 if left[i] == right[j] else max(below[j], here[j + 1])
    i = j = 0
    while longest[i][j]:
        if left[i] == right[j]:
            yield i, j
            i, j = i + 1, j + 1
        elif (longest[i + 1][j], j) >= (longest[i][j + 1], i):
            i += 1
        else:
            j += 1


def _call(node: torch.fx.Node) -> Hashable:
    """Return what a node calls; all inputs are equal, and parameters and modules are distinguished by their paths."""
    path = str(node.target) if node.op in ("call_module", "get_attr") else ""
    return node.op, operator_name(node), path


def _exact_call(node: torch.fx.Node) -> Hashable:
    shown = ("node" if isinstance(leaf, torch.fx.Node) else repr(leaf) for _, leaf in operands(node))
    return _call(node), *shown
