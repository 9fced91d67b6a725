"""What a pass did to a graph, as one picture of both graphs."""

from dataclasses import replace

from course_lib.graph.diffing import GraphDiff
from course_lib.graph.drawing import Box, Drawing, boxes_of, render

# Fill, border and line of what happened to a node. The label says it too, so nothing is said by colour alone.
STYLES = {
    "removed": ("#fae0d2", "#d55e00", "dashed"),
    "added": ("#d8f0e6", "#009e73", "bold"),
    "changed": ("#fdf3d0", "#b8860b", "bold"),
    "kept": ("#f4f4f4", "#888888", "solid"),
}


def draw_diff(difference: GraphDiff) -> Drawing:
    """Draw the graph after a pass together with the nodes that the pass removed.

    Each node says in its first line whether it was removed, added or changed; kept nodes are grey. Dashed arrows
    lead to removed nodes, from their operands of then. Raises `GraphError` if Graphviz is not installed.
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
    """Return a name for a removed node that no node of the graph after can have."""
    return f"before/{name}"


def _styled(box: Box, fate: str) -> Box:
    fill, border, line = STYLES[fate]
    label = box.label if fate == "kept" else f"{fate.upper()}\n{box.label}"
    return replace(box, label=label, fill=fill, border=border, line=line)
