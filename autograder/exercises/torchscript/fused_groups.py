"""Exercise 03.5: find every fusion group of an optimised TorchScript graph, at any nesting level."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.value import ValueAnswer, shortened

GROUPS = ("prim::TensorExprGroup", "prim::oneDNNFusionGroup")
OPERATORS = ("aten::tanh", "aten::exp", "aten::relu", "aten::sigmoid", "aten::neg", "aten::abs")
Group = Mapping[str, Any]
"""{"kind": kind of the group, "operators": kinds of its nodes in order, without constants}"""


@dataclass(frozen=True)
class Node:
    """A node of a graph that will be printed, with one input tensor and one output tensor."""

    kind: str
    blocks: "tuple[tuple[Node, ...], ...]" = ()
    inside: "tuple[Node, ...]" = ()  # its subgraph


Body = tuple[Node, ...]


def group(draw: Draw, kind: str = GROUPS[0]) -> Node:
    """Return a group of one to four operators, constants among them."""
    operators = [Node(draw.choice(OPERATORS)) for _ in range(draw.integer(1, 4))]
    if draw.chance(0.7):
        operators.insert(draw.integer(0, len(operators) - 1), Node("prim::Constant"))
    return Node(kind, inside=tuple(operators))


def alone(draw: Draw) -> Node:
    """Return an operator that was not fused."""
    return Node(draw.choice(OPERATORS))


def body(draw: Draw, depth: int, kinds: Sequence[str] = GROUPS) -> Body:
    """Return a few nodes: operators and groups, in branches, loops and autograd graphs up to `depth` levels."""
    nodes = [alone(draw), group(draw, draw.choice(kinds))]
    if depth > 0:
        nodes += [holder(draw, depth, kinds, draw.choice(("If", "Loop", "graph"))) for _ in range(draw.integer(1, 2))]
    return tuple(draw.sample(nodes, len(nodes)))


def holder(draw: Draw, depth: int, kinds: Sequence[str], which: str) -> Node:
    """Return a node that contains bodies."""
    if which == "If":
        return Node("prim::If", blocks=(body(draw, depth - 1, kinds), body(draw, depth - 1, kinds)))
    if which == "Loop":
        return Node("prim::Loop", blocks=(body(draw, depth - 1, kinds),))
    return Node("prim::DifferentiableGraph", inside=body(draw, depth - 1, kinds))


def question(nodes: Body) -> Mapping[str, Any]:
    """Return the graph in the form that `course_lib.capture.script_graphs.graph_of` accepts."""
    held: list[Mapping[str, Any]] = []
    lines, result = _lines(nodes, "%x", "", held, iter(range(10_000)))
    return {"ir": "\n".join(["graph(%x : Tensor, %c : bool):", *lines, f"  return ({result})"]), "held": held}


def _lines(nodes: Body, value: str, indent: str, held: list[Mapping[str, Any]], numbers: Any) -> tuple[list[str], str]:
    """Return the printed nodes of one block, and the name of the last node's output."""
    lines = []
    for node in nodes:
        number = next(numbers)
        if node.kind == "prim::Constant":
            lines.append(f"{indent}  %k{number} : int = prim::Constant[value={number}]()")
            continue
        result = f"%v{number}"
        if node.blocks:
            lines += _with_blocks(node, result, value, indent, held, numbers)
        elif node.inside:
            held.append(question(node.inside))
            lines.append(f"{indent}  {result} : Tensor = {node.kind}[held={len(held) - 1}]({value})")
        else:
            lines.append(f"{indent}  {result} : Tensor = {node.kind}({value})")
        value = result
    return lines, value


def _with_blocks(
    node: Node, result: str, value: str, indent: str, held: list[Mapping[str, Any]], numbers: Any
) -> list[str]:
    number = next(numbers)
    loop = node.kind == "prim::Loop"
    lines = [f"{indent}  %n{number} : int = prim::Constant[value=3]()"] if loop else []
    operands = f"%n{number}, %c, {value}" if loop else "%c"
    lines.append(f"{indent}  {result} : Tensor = {node.kind}({operands})")
    for i, block in enumerate(node.blocks):
        inputs, first = (f"%i{number} : int, %z{number} : Tensor", f"%z{number}") if loop else ("", value)
        inner, last = _lines(block, first, indent + "    ", held, numbers)
        outputs = f"%c, {last}" if loop else last
        lines += [f"{indent}    block{i}({inputs}):", *inner, f"{indent}      -> ({outputs})"]
    return lines


def found(nodes: Body, *, blocks: bool = True, graphs: bool = True, constants: bool = False) -> list[Group]:
    """Return every group in the order of the search; the options reproduce common mistakes."""
    result: list[Group] = []
    for node in nodes:
        if node.kind in GROUPS:
            inside = [n.kind for n in node.inside if constants or n.kind != "prim::Constant"]
            result.append({"kind": node.kind, "operators": inside})
            continue
        for block in node.blocks if blocks else ():
            result += found(block, blocks=blocks, graphs=graphs, constants=constants)
        if graphs:
            result += found(node.inside, blocks=blocks, graphs=graphs, constants=constants)
    return result


MISCONCEPTIONS = (
    Misconception(
        lambda nodes: found(nodes, blocks=False),
        "Groups inside `prim::If` and `prim::Loop` are missing: such a node has blocks, and each block has nodes.",
    ),
    Misconception(
        lambda nodes: found(nodes, graphs=False),
        "Groups inside `prim::DifferentiableGraph` are missing: it holds a graph in its attribute Subgraph.",
    ),
    Misconception(
        lambda nodes: found(nodes, blocks=False, graphs=False),
        "Only the top of the graph was searched: look into blocks and into the graphs that nodes hold.",
    ),
    Misconception(
        lambda nodes: found(nodes, constants=True), "`prim::Constant` is listed: a constant is no operator that runs."
    ),
    Misconception(
        lambda nodes: [g for g in found(nodes) if g["kind"] == GROUPS[0]],
        "`prim::oneDNNFusionGroup` is a group as well: the other fuser's.",
    ),
)


def groups_right(graphs: Callable[[Draw], Sequence[Body]]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the groups of all graphs are found."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for nodes in graphs(draw):
            given, expected = answer.ask(question(nodes)), found(nodes)
            if given != expected:
                says = next((m.says for m in MISCONCEPTIONS if m.formula(nodes) == given), "")
                told = f"fused_groups returned {shortened(given, 200)}; expected {shortened(expected, 200)}."
                raise CheckFailedError(f"{told} {says}".strip())

    return run


def flat(draw: Draw) -> list[Body]:
    """Return graphs with groups of both kinds at the top level."""
    return [(alone(draw), group(draw), alone(draw), group(draw, GROUPS[1])) for _ in range(3)]


def branched(draw: Draw) -> list[Body]:
    """Return graphs with one level of branches, as after the guard of a real optimised graph."""
    return [
        (Node("prim::If", blocks=((group(draw), alone(draw)), (alone(draw),))), group(draw)),
        (group(draw), Node("prim::Loop", blocks=((alone(draw), group(draw)),))),
    ]


def differentiable(draw: Draw) -> list[Body]:
    """Return an autograd graph around a group, as for inputs that require gradients."""
    return [(alone(draw), Node("prim::DifferentiableGraph", inside=(group(draw), alone(draw))), group(draw))]


EXERCISE = Exercise(
    title="Every fusion group",
    kind=Kind.VALUE,
    entry_point="fused_groups",
    points=10,
    masked=("course_lib.capture.fusion_groups",),  # it would find the groups
    wall_s=20,
    checks=(
        Check("groups at the top of a graph", "top level", 2, groups_right(flat)),
        Check("groups inside If and Loop", "blocks", 2, groups_right(branched)),
        Check("groups inside a DifferentiableGraph", "held graphs", 2, groups_right(differentiable)),
    ),
    hints=(
        "A node can hold others in two ways: in its blocks (`node.blocks()`), and in a graph of its own "
        '(`node.g("Subgraph")`).',
        "Write an inner function that takes anything with `.nodes()` (a graph or a block) and call it again for what "
        "each node holds.",
        'For a group, collect the kinds of `node.g("Subgraph").nodes()`. For any other node, go into every block, and '
        'into its graph if "Subgraph" is among `node.attributeNames()`.',
    ),
)
