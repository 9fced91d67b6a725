"""Exercise 03.5: find every fusion group of an optimised TorchScript graph, at any nesting level."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.host.checks.known_mistakes import Mistake, mistakes_made, options_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.differences import contrasted
from autograder.host.kinds.value import ValueAnswer

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


def found(
    nodes: Body,
    *,
    blocks: bool = True,
    graphs: bool = True,
    constants: bool = False,
    kinds: Sequence[str] = GROUPS,
    by_kind: bool = False,
) -> list[Group]:
    """Return every group in the order of the search; the options reproduce common mistakes."""
    result: list[Group] = []
    options: Mapping[str, Any] = {"blocks": blocks, "graphs": graphs, "constants": constants, "kinds": kinds}
    for node in nodes:
        if node.kind in GROUPS:
            inside = [n.kind for n in node.inside if constants or n.kind != "prim::Constant"]
            result += [{"kind": node.kind, "operators": inside}] if node.kind in kinds else []
            continue
        for block in node.blocks if blocks else ():
            result += found(block, **options)
        if graphs:
            result += found(node.inside, **options)
    return sorted(result, key=lambda group: GROUPS.index(group["kind"])) if by_kind else result


MISTAKES = (
    Mistake(
        {"constants": True},
        "`prim::Constant` is listed: a constant is no operator that runs.",
        "top level",
    ),
    Mistake(
        {"kinds": GROUPS[:1]},
        "`prim::oneDNNFusionGroup` is a group as well: the other fuser's.",
        "top level",
    ),
    Mistake(
        {"blocks": False},
        "Groups inside `prim::If` and `prim::Loop` are missing: such a node has blocks, and each block has nodes.",
        "blocks",
    ),
    Mistake(
        {"graphs": False},
        "Groups inside `prim::DifferentiableGraph` are missing: it holds a graph in its attribute Subgraph.",
        "held graphs",
    ),
    Mistake(
        {"by_kind": True},
        "The groups are sorted by kind: list them in the order of a search from top to bottom.",
        "nesting",
    ),
)


def _granted(answer: ValueAnswer, draw: Draw, category: str) -> Mapping[str, Any]:
    """Return the options of mistakes at the top of a graph, which cost the check of "top level" and no other."""
    if category == "top level":
        return {}
    group_of_all = Node(GROUPS[0], inside=(Node("prim::Constant"), Node(OPERATORS[0])))
    nodes = (alone(draw), group_of_all, Node(GROUPS[1], inside=group_of_all.inside))
    given = answer.ask(question(nodes))
    top = [mistake for mistake in MISTAKES if mistake.counted == "top level"]
    return options_of(mistakes_made(lambda options: given == found(nodes, **options), top) or ())


def groups_right(graphs: Callable[[Draw], Sequence[Body]], category: str) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the groups of all graphs are found."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        granted = _granted(answer, draw.shared("top level"), category)
        for nodes in graphs(draw):
            given = answer.ask(question(nodes))
            if given != found(nodes, **granted):
                raise CheckFailedError(_told(given, nodes))

    return run


def _told(given: Any, nodes: Body) -> str:
    made = mistakes_made(lambda options: given == found(nodes, **options), MISTAKES, most=3) or ()
    if not isinstance(given, list) or not all(isinstance(each, dict) for each in given):
        made = ()
    says = " ".join(mistake.says for mistake in made)
    return f"fused_groups returned {contrasted(given, found(nodes), most=200)}. {says}".strip()


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
        Check("groups at the top of a graph", "top level", 1.5, groups_right(flat, "top level")),
        Check("groups inside If and Loop", "blocks", 2, groups_right(branched, "blocks")),
        Check("groups inside a DifferentiableGraph", "held graphs", 2, groups_right(differentiable, "held graphs")),
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
