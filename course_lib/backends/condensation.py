"""Merge nodes of a graph into groups that never form a cycle.

Two groups may be merged if no path leads from one to the other through a node outside both. With such a path, the
merged group would have to run both before and after that node. Each group stores its ancestors as bits of one integer,
which show whether such a path exists.
"""

import heapq
from collections.abc import Callable, Mapping, Sequence

from torch import fx

Fits = Callable[[Sequence[fx.Node], Sequence[fx.Node]], bool]


class Condensation:
    """Groups of a graph's nodes, at first one node each; the groups always form an acyclic graph.

        >>> graph = fx.Graph()
        >>> x = graph.placeholder("x")
        >>> a = graph.call_function(abs, (x,)); b = graph.call_function(abs, (a,)); c = graph.call_function(max, (a, b))
        >>> groups = Condensation(graph)
        >>> groups.merge(a, c)  # b would come after the group, and before it
        False
        >>> groups.merge(a, b), groups.merge(a, c)
        (True, True)

    `after` adds edges to those of the graph: a node runs after all that are listed for it.
    """

    def __init__(self, graph: fx.Graph, after: Mapping[fx.Node, Sequence[fx.Node]] | None = None) -> None:
        self._nodes = list(graph.nodes)
        self._bit = {node: 1 << position for position, node in enumerate(self._nodes)}
        self._group: dict[fx.Node, fx.Node] = {node: node for node in self._nodes}  # node -> first of its group
        self.members: dict[fx.Node, list[fx.Node]] = {node: [node] for node in self._nodes}  # in graph order
        self._operands: dict[fx.Node, set[fx.Node]] = {}
        self._inside: dict[fx.Node, int] = dict(self._bit)
        self._ancestors: dict[fx.Node, int] = {}
        for node in self._nodes:
            earlier = {*node.all_input_nodes, *(after or {}).get(node, ())}
            self._operands[node] = earlier
            bits = 0
            for operand in earlier:
                bits |= self._ancestors[operand] | self._bit[operand]
            self._ancestors[node] = bits

    def group_of(self, node: fx.Node) -> fx.Node:
        """Return the first node of the group in which a node is."""
        return self._group[node]

    def operands_of(self, node: fx.Node) -> list[fx.Node]:
        """Return the first nodes of the groups that a node's group reads directly, in graph order."""
        first = self._group[node]
        found = {self._group[operand] for member in self.members[first] for operand in self._operands[member]}
        return sorted(found - {first})

    def merge(self, a: fx.Node, b: fx.Node) -> bool:
        """Merge the groups of `a` and `b`, and return True; return False if that would create a cycle."""
        a, b = sorted((self._group[a], self._group[b]))
        if a is b:
            return True
        if self._path_through_others(a, b) or self._path_through_others(b, a):
            return False
        self.members[a] = sorted([*self.members[a], *self.members.pop(b)])
        for node in self.members[a]:
            self._group[node] = a
        inside = self._inside[a] | self._inside.pop(b)
        ancestors = (self._ancestors[a] | self._ancestors.pop(b)) & ~inside
        self._inside[a], self._ancestors[a] = inside, ancestors
        for group, bits in self._ancestors.items():
            if bits & inside and group is not a:
                self._ancestors[group] = bits | inside | ancestors
        return True

    def merge_neighbours(self, candidates: Sequence[fx.Node], fits: Fits) -> None:
        """Merge along edges between candidates, until no two neighbours that fit can be merged any more."""
        wanted = set(candidates)
        changed = True
        while changed:
            changed = False
            for node in candidates:
                for operand in sorted(self._operands[node]):
                    if operand in wanted and self._merge_if_fits(operand, node, fits):
                        changed = True

    def merge_siblings(self, candidates: Sequence[fx.Node], fits: Fits) -> None:
        """Merge candidates that read the same value, where they fit."""
        wanted = set(candidates)
        for node in self._nodes:
            first, *others = [user for user in node.users if user in wanted] or [node]
            for other in others:
                self._merge_if_fits(first, other, fits)

    def merge_alike(self, candidates: Sequence[fx.Node], likeness: Callable[[Sequence[fx.Node]], object]) -> None:
        """Merge groups of candidates with equal `likeness`, whether or not an edge connects them."""
        kinds: dict[object, list[fx.Node]] = {}
        for first in dict.fromkeys(self._group[node] for node in candidates):
            others = kinds.setdefault(likeness(self.members[first]), [])
            if not any(self.merge(other, first) for other in others):
                others.append(first)

    def in_order(self) -> list[list[fx.Node]]:
        """Return all groups, each after the groups that it needs, otherwise in the order of their last nodes."""
        needed = {group: self.operands_of(group) for group in self.members}
        missing = {group: len(operands) for group, operands in needed.items()}
        users: dict[fx.Node, list[fx.Node]] = {group: [] for group in self.members}
        for group, operands in needed.items():
            for operand in operands:
                users[operand].append(group)
        place = {node: position for position, node in enumerate(self._nodes)}
        ready = [(place[self.members[group][-1]], group) for group, count in missing.items() if count == 0]
        heapq.heapify(ready)
        ordered: list[list[fx.Node]] = []
        while ready:
            _, group = heapq.heappop(ready)
            ordered.append(self.members[group])
            for user in users[group]:
                missing[user] -= 1
                if missing[user] == 0:
                    heapq.heappush(ready, (place[self.members[user][-1]], user))
        assert len(ordered) == len(self.members), "merging never makes a cycle"
        return ordered

    def _merge_if_fits(self, a: fx.Node, b: fx.Node, fits: Fits) -> bool:
        first, second = self._group[a], self._group[b]
        if first is second or not fits(self.members[first], self.members[second]):
            return False
        return self.merge(first, second)

    def _path_through_others(self, start: fx.Node, end: fx.Node) -> bool:
        """Return whether a path leads from one group to another through a third."""
        between = (group for group in self.operands_of(end) if group is not start)
        return any(self._ancestors[group] & self._inside[start] for group in between)
