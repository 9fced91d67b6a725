"""Draw the life of a program with a target: its operators, the parts, the instructions of each, and what they cost."""

from torch import fx

from course_lib.backends.lowered_graph import Lowered
from course_lib.backends.parts import computes
from course_lib.backends.toy.toy_target import ToyExecutable
from course_lib.graph.drawing import Box, Drawing, render
from course_lib.show import format_bytes

GRAPH, PART, CODE, COUNTS, EAGER = (
    ("#d9edf7", "#0072b2"),
    ("#d8f0e6", "#009e73"),
    ("#fdf3d0", "#b8860b"),
    ("#e8e8e8", "#555555"),
    ("#fae0d2", "#d55e00"),
)
LINES = 14  # of instructions that a box shows


def draw_life(gm: fx.GraphModule, lowered: Lowered) -> Drawing:
    """Draw a graph, its parts, the programs of those that the toy machine runs, and their counts.

        drawing = draw_life(gm, lower(gm, example_inputs, ToyTarget()))

    Graph, parts, instructions and counts are boxes from top to bottom; what eager PyTorch runs is a box at the side.
    Raises `GraphError` if Graphviz is not installed.
    """
    calls = [node.name for node in gm.graph.nodes if node.op.startswith("call_") and computes(node)]
    boxes = [Box("graph", f"graph: {len(calls)} operators\n{_listed(calls)}", *GRAPH, ())]
    for part in lowered.parts:
        names = _listed([name.partition(".")[2] for name in part.operators])
        boxes.append(Box(part.name, f"{part.name}\n{names}", *PART, ("graph",)))
        if isinstance(part.compiled, ToyExecutable):
            boxes += _program(part.name, part.compiled)
        elif part.compiled is not None and not part.kept:
            boxes.append(Box(f"{part.name} left", f"left to eager PyTorch\n{part.compiled}", *EAGER, (part.name,)))
    if lowered.refusals:
        names = _listed([refusal.operator.partition(".")[2] for refusal in lowered.refusals])
        boxes.append(Box("eager", f"eager PyTorch\n{names}", *EAGER, ("graph",), "dashed"))
    text = "\n".join(f"{box.name}: {' · '.join(filter(None, box.label.splitlines()))}" for box in boxes)
    kept = sum(part.kept for part in lowered.parts)
    alt = f"Life of a program: {len(calls)} operators, {len(lowered.parts)} parts, {kept} of them with instructions."
    return Drawing(render(boxes, alt), text, alt)


def _program(name: str, executable: ToyExecutable) -> list[Box]:
    lines = str(executable.program).splitlines()
    shown = lines if len(lines) <= LINES else [*lines[:LINES], f"… and {len(lines) - LINES} lines more"]
    counts = executable.program.counts
    told = (
        f"launches {counts.launches}, {format_bytes(counts.bytes_moved)} moved\n"
        f"registers {counts.registers}, spills {counts.spills}"
    )
    code = Box(f"{name} program", "\n".join(line.strip() for line in shown), *CODE, (name,), lines="left")
    return [code, Box(f"{name} counts", told, *COUNTS, (code.name,))]


def _listed(names: list[str]) -> str:
    """Return names in lines of six."""
    return "\n".join(", ".join(names[at : at + 6]) for at in range(0, len(names), 6))
