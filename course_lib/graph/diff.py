"""Compare two graphs: which nodes a pass removed, added, changed and kept."""

import html
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import torch

from course_lib.errors import GraphError
from course_lib.graph.drawing import Box, Drawing, boxes_of, render
from course_lib.graph.node_pairs import Pairs, operands, pair_nodes
from course_lib.graph.nodes import arguments, code_table, operator_name

SIGNS = {"removed": "-", "added": "+", "changed": "~", "kept": " "}


@dataclass(frozen=True)
class NodeChange:
    """A node that makes the same call as before, with other arguments."""

    before: str  # its name in the graph before
    after: str
    arguments_before: str
    arguments_after: str


@dataclass(frozen=True, repr=False)
class GraphDiff:
    """Hold the difference of two graphs by names of nodes; prints as text and shows as a table in a notebook."""

    removed: tuple[str, ...]  # names in the graph before
    added: tuple[str, ...]  # names in the graph after
    changed: tuple[NodeChange, ...]
    kept: tuple[tuple[str, str], ...]  # name before, name after
    in_place_of: Mapping[str, str]  # added node -> the removed node whose users use it now
    before: torch.fx.GraphModule = field(compare=False)
    after: torch.fx.GraphModule = field(compare=False)

    def __bool__(self) -> bool:
        """Tell whether the graphs differ in more than names and order."""
        return bool(self.removed or self.added or self.changed)

    def __str__(self) -> str:
        shown = [f"{SIGNS[row[0]]} {row[1]}: {row[2]}({row[3]}){_remark(row[4])}" for row in self._rows()]
        return "\n".join([self._summary(), *shown])

    __repr__ = __str__  # notebooks, terminals and logs all show the readable form

    def _repr_html_(self) -> str:
        columns = ("what", "node", "calls", "arguments", "remark")
        rows = tuple((f"{SIGNS[row[0]]} {row[0]}".strip(), *row[1:]) for row in self._rows())
        return f"<p>{html.escape(self._summary())}</p>{code_table(columns, rows)._repr_html_()}"

    def _summary(self) -> str:
        counts = [(len(self.removed), "removed"), (len(self.added), "added"), (len(self.changed), "changed")]
        return ", ".join(f"{count} {what}" for count, what in [*counts, (len(self.kept), "kept")])

    def _rows(self) -> list[tuple[str, str, str, str, str]]:
        """Return a row for each node, in the order of the graph before; added nodes are at their new places."""
        successors = {change.before: change.after for change in self.changed} | dict(self.kept)
        predecessors = {after: before for before, after in successors.items()}
        changes = {change.before: change for change in self.changed}
        rows: list[tuple[str, str, str, str, str]] = []
        old_nodes = list(self.before.graph.nodes)
        places = {old.name: place for place, old in enumerate(old_nodes)}
        passed = 0
        for node in self.after.graph.nodes:
            if node.name not in predecessors:
                rows.append(_row("added", node, self._origin(node.name)))
                continue
            # The loop has already passed the old place of a node that moved up, so no removed node is listed for it.
            here = max(passed, places[predecessors[node.name]] + 1)
            rows += [_row("removed", old, "") for old in old_nodes[passed:here] if old.name not in successors]
            passed = here
            rows.append(self._survivor(node, predecessors[node.name], changes))
        rows += [_row("removed", old, "") for old in old_nodes[passed:] if old.name not in successors]
        return rows

    def _origin(self, name: str) -> str:
        return f"in place of {self.in_place_of[name]}" if name in self.in_place_of else ""

    def _survivor(
        self, node: torch.fx.Node, old_name: str, changes: Mapping[str, NodeChange]
    ) -> tuple[str, str, str, str, str]:
        remarks = [f"was {old_name}"] if old_name != node.name else []
        if old_name not in changes:
            return _row("kept", node, ", ".join(remarks))
        return _row("changed", node, ", ".join([*remarks, f"arguments were {changes[old_name].arguments_before}"]))


def _row(what: str, node: torch.fx.Node, remark: str) -> tuple[str, str, str, str, str]:
    return what, node.name, operator_name(node), arguments(node), remark


def _remark(text: str) -> str:
    return f"  [{text}]" if text else ""


def diff(before: torch.fx.GraphModule, after: torch.fx.GraphModule) -> GraphDiff:
    """Compare two graphs, such as one before and one after a pass.

        >>> before = torch.fx.symbolic_trace(lambda x: torch.relu(x + 0))
        >>> after = torch.fx.symbolic_trace(lambda y: torch.relu(y))
        >>> diff(before, after)
        1 removed, 0 added, 1 changed, 2 kept
          y: input()  [was x]
        - add: operator.add(x, 0)
        ~ relu: torch.relu(y)  [arguments were add]
          output: output(relu)

    Nodes are matched by what they compute and how they are used. Names and order do not matter; inputs are matched by
    position, parameters and modules by path. A node is kept if it makes the same call on the same operands. A replaced
    operand counts as the same if the new node took its place. Values of parameters are not compared. Raises
    `GraphError` for anything but two graph modules.
    """
    for given in (before, after):
        if not isinstance(given, torch.fx.GraphModule):
            raise GraphError(
                f"diff() got a {type(given).__name__}; it compares two torch.fx.GraphModule, see capture()."
            )
    pairs = pair_nodes(before.graph, after.graph)
    found = set(pairs.values())
    removed = [node for node in before.graph.nodes if node not in pairs]
    added = [node for node in after.graph.nodes if node not in found]
    successors = _successors(pairs, set(added))
    changed = [(old, new) for old, new in pairs.items() if not _same_operands(old, new, pairs, successors)]
    kept = pairs.keys() - {old for old, _ in changed}
    return GraphDiff(
        removed=tuple(node.name for node in removed),
        added=tuple(node.name for node in added),
        changed=tuple(NodeChange(old.name, new.name, arguments(old), arguments(new)) for old, new in changed),
        kept=tuple((node.name, pairs[node].name) for node in before.graph.nodes if node in kept),
        in_place_of={new.name: old.name for old, new in successors.items()},
        before=before,
        after=after,
    )


def _successors(pairs: Pairs, added: set[torch.fx.Node]) -> Pairs:
    """Map each removed node to the added node that replaced it in its users."""
    successors: Pairs = {}
    for old, new in pairs.items():
        theirs = dict(operands(new))
        for place, operand in operands(old):
            other = theirs.get(place)
            if isinstance(operand, torch.fx.Node) and operand not in pairs and other in added:
                assert isinstance(other, torch.fx.Node), "added nodes are nodes"
                successors.setdefault(operand, other)
    return successors


def _same_operands(old: torch.fx.Node, new: torch.fx.Node, pairs: Pairs, successors: Pairs) -> bool:
    ours, theirs = dict(operands(old)), dict(operands(new))
    if old.op == "placeholder":
        return True  # inputs are matched by position only
    return ours.keys() == theirs.keys() and all(
        theirs[place] is (pairs.get(operand) or successors.get(operand))
        if isinstance(operand, torch.fx.Node)
        else type(operand) is type(theirs[place]) and repr(operand) == repr(theirs[place])
        for place, operand in ours.items()
    )


# Fill, border and line style of each kind of change. The label names the kind too, so colour is never the only sign.
STYLES = {
    "removed": ("#fae0d2", "#d55e00", "dashed"),
    "added": ("#d8f0e6", "#009e73", "bold"),
    "changed": ("#fdf3d0", "#b8860b", "bold"),
    "kept": ("#f4f4f4", "#888888", "solid"),
}


def draw_diff(difference: GraphDiff) -> Drawing:
    """Draw the graph after a pass together with the nodes that the pass removed.

    Each node says in its first line whether it was removed, added or changed; kept nodes are grey. Dashed arrows
    lead to removed nodes from their former operands. Raises `GraphError` if Graphviz is not installed.
    """
    fates = dict.fromkeys(difference.added, "added") | {change.after: "changed" for change in difference.changed}
    boxes = [_styled(box, fates.get(box.name, "kept")) for box in boxes_of(difference.after)]
    now = dict(difference.kept) | {change.before: change.after for change in difference.changed}
    removed = set(difference.removed)
    for box in boxes_of(difference.before):
        if box.name in removed:
            operands = tuple(now.get(operand, _old(operand)) for operand in box.operands)
            boxes.append(_styled(replace(box, name=_old(box.name), operands=operands), "removed"))
    counts = f"{len(removed)} nodes removed, {len(difference.added)} added, {len(difference.changed)} changed"
    alt = f"Difference of two graphs: {counts}, {len(difference.kept)} kept."
    return Drawing(svg=render(boxes, alt), text=str(difference), alt=alt)


def _old(name: str) -> str:
    """Return a name for a removed node that no node of the new graph can have."""
    return f"before/{name}"


def _styled(box: Box, fate: str) -> Box:
    fill, border, line = STYLES[fate]
    label = box.label if fate == "kept" else f"{fate.upper()}\n{box.label}"
    return replace(box, label=label, fill=fill, border=border, line=line)
