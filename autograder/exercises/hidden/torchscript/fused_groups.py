"""Hidden checks and controls of exercise 03.5."""

from __future__ import annotations

from autograder.exercises.torchscript import fused_groups as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart


def _nested(draw: Draw) -> list[visible.Body]:
    """Branches in loops in graphs of autograd, and the reverse."""
    return [visible.body(draw, depth) for depth in (2, 2, 3)]


def _deep(draw: Draw) -> list[visible.Body]:
    """One group at the end of each way of nesting."""
    bodies = []
    for order in (("If", "graph", "Loop"), ("graph", "If", "graph"), ("Loop", "Loop", "graph")):
        nodes: visible.Body = (visible.alone(draw), visible.group(draw))
        for which in order:
            kind = {"If": "prim::If", "Loop": "prim::Loop", "graph": "prim::DifferentiableGraph"}[which]
            blocks = {"If": (nodes, (visible.alone(draw),)), "Loop": (nodes,), "graph": ()}[which]
            held = nodes if which == "graph" else ()
            nodes = (visible.Node(kind, blocks=blocks, inside=held), visible.alone(draw))
        bodies.append(nodes)
    return bodies


def _none(draw: Draw) -> list[visible.Body]:
    """Graphs without a group, a fallback among them, and one with two groups alike."""
    fallback = visible.Node("prim::FallbackGraph", inside=(visible.alone(draw),))
    same = visible.group(draw)
    return [(visible.alone(draw), fallback), (same, visible.alone(draw), same)]


REFERENCE = """
def fused_groups(data):
    found = []

    def search(holder):
        for node in holder.nodes():
            inside = node.g("Subgraph") if "Subgraph" in node.attributeNames() else None
            if node.kind() in ("prim::TensorExprGroup", "prim::oneDNNFusionGroup"):
                operators = [n.kind() for n in inside.nodes() if n.kind() != "prim::Constant"]
                found.append({"kind": node.kind(), "operators": operators})
                continue
            for block in node.blocks():
                search(block)
            if inside is not None:
                search(inside)

    search(graph_of(data))
    return found
"""
TOP = REFERENCE.replace("search(block)", "pass").replace("                search(inside)", "                pass")
NO_GRAPHS = REFERENCE.replace("                search(inside)", "                pass")
LIBRARY = """
def fused_groups(data):
    from course_lib.capture.fusion_groups import _groups
    return [{"kind": g.kind, "operators": list(g.operators)} for g in _groups(graph_of(data))]
"""

HIDDEN = HiddenPart(
    checks=(
        Check("nested branches, loops and graphs", "nesting", 2, visible.groups_right(_nested)),
        Check("three levels down", "nesting", 1, visible.groups_right(_deep)),
        Check("no groups, and equal ones", "none", 1, visible.groups_right(_none)),
    ),
    controls=(
        Control("reference", REFERENCE, 10),
        Control("the top level only", TOP, 3),
        Control("never into held graphs", NO_GRAPHS, 5),
        Control("the library's own", LIBRARY, 0),
    ),
    equivalent={"line 11: continue -> pass": "what a group holds has neither blocks nor groups"},
)
