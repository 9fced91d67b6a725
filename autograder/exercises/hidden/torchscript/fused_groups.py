"""Hidden checks and controls of exercise 03.5."""

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import fused_groups as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart


def _nested(draw: Draw) -> list[visible.Body]:
    """Return branches in loops in autograd graphs, and the reverse nesting."""
    return [visible.body(draw, depth) for depth in (2, 2, 3)]


def _deep(draw: Draw) -> list[visible.Body]:
    """Return one group in the innermost level of each kind of nesting."""
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
    """Return graphs without a group, including a fallback graph, and one graph with two equal groups."""
    fallback = visible.Node("prim::FallbackGraph", inside=(visible.alone(draw),))
    same = visible.group(draw)
    return [(visible.alone(draw), fallback), (same, visible.alone(draw), same)]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("nested branches, loops and graphs", "nesting", 2, visible.groups_right(_nested, "nesting")),
        Check("three levels down", "nesting", 1.5, visible.groups_right(_deep, "nesting")),
        Check("no groups, and equal ones", "none", 1, visible.groups_right(_none, "none")),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("the top level only", 2.5, ("search(block)", "pass"), ("search(inside)", "pass")),
        ANSWERS.edited("never into held graphs", 4.5, ("search(inside)", "pass")),
        ANSWERS.file("the library's own", 0),
    ),
    equivalent={"continue -> pass": "what a group holds has neither blocks nor groups"},
)
