"""Draw a graph as a picture, with an equivalent text."""

import base64
import html
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import torch

from course_lib.errors import GraphError
from course_lib.graph.nodes import operator_name
from course_lib.graph.shapes import describe, require_graph

# Fill and border of each kind of node; the node's text names the kind too, so colour is never the only sign.
# This is Okabe and Ito's palette, lightened: its hues differ for every kind of colour vision.
STYLES = {
    "placeholder": ("input", "#d9edf7", "#0072b2"),
    "get_attr": ("parameter", "#fdf3d0", "#b8860b"),
    "call_function": ("function", "#d8f0e6", "#009e73"),
    "call_method": ("method", "#f6e3ee", "#b0588c"),
    "call_module": ("module", "#fae0d2", "#d55e00"),
    "output": ("output", "#e8e8e8", "#555555"),
}


@dataclass(frozen=True, repr=False)
class Drawing:
    """Hold a picture of a graph: `svg` is the picture, `text` is the same as text, `alt` is a one-sentence summary."""

    svg: str
    text: str
    alt: str

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__  # notebooks, terminals and logs all show the readable form

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        data = base64.b64encode(self.svg.encode()).decode()
        source = f"data:image/svg+xml;base64,{data}"
        return f'<img alt="{html.escape(self.alt, quote=True)}" style="max-width: 100%" src="{source}"/>'


@dataclass(frozen=True)
class Box:
    """Describe the box of one node in a picture."""

    name: str
    label: str
    fill: str
    border: str
    operands: tuple[str, ...]  # names of the boxes from which arrows come
    line: str = "solid"  # of border and arrows, one of Graphviz's styles
    lines: Literal["centred", "left"] = "centred"  # of the label


def draw(gm: torch.fx.GraphModule) -> Drawing:
    """Draw a graph from its inputs at the top to its output at the bottom, without network access.

    Each node shows its name, its kind, what it calls, and its shape if shapes were propagated. Raises `GraphError`
    if `gm` holds no graph, or if Graphviz is not installed.
    """
    require_graph("draw", gm)
    nodes = list(gm.graph.nodes)
    inputs = [node.name for node in nodes if node.op == "placeholder"]
    calls = [_calls(node) for node in nodes if node.op.startswith("call_")]
    steps = ", then ".join(calls[:8]) + (f", and {len(calls) - 8} more" if len(calls) > 8 else "")
    alt = f"Graph of {len(nodes)} nodes with input {', '.join(inputs) or 'nothing'}: {steps or 'no calls'}."
    return Drawing(svg=render(boxes_of(gm), alt), text=_text(gm), alt=alt)


def boxes_of(gm: torch.fx.GraphModule) -> list[Box]:
    """Return a box for each node of a graph."""
    boxes = []
    for node in gm.graph.nodes:
        _, fill, border = STYLES[node.op]
        kind = _kind(node)
        title = node.name if node.name == kind else f"{node.name} · {kind}"
        label = "\n".join(filter(None, (title, _calls(node), describe(node))))
        boxes.append(Box(node.name, label, fill, border, tuple(operand.name for operand in node.all_input_nodes)))
    return boxes


def render(boxes: Iterable[Box], alt: str) -> str:
    """Return boxes and the arrows between them as SVG; raises `GraphError` if Graphviz is not installed."""
    import graphviz  # here, because machines without graphviz also read and rebuild graphs

    picture = graphviz.Digraph(
        graph_attr={"rankdir": "TB", "nodesep": "0.2", "ranksep": "0.3", "bgcolor": "transparent", "tooltip": alt},
        node_attr={"shape": "box", "fontname": "Helvetica", "fontsize": "11", "height": "0.3"},
        edge_attr={"color": "#7a7a7a", "arrowsize": "0.6"},
    )
    for box in boxes:
        label = graphviz.escape(box.label)
        if box.lines == "left":  # "\\l" ends a line that stands at the left
            label = "".join(f"{line}\\l" for line in label.splitlines())
        style = f"rounded,filled,{box.line}"
        picture.node(
            box.name, label, fillcolor=box.fill, color=box.border, style=style, tooltip=graphviz.escape(box.label)
        )
        for operand in box.operands:
            picture.edge(operand, box.name, style=box.line)
    try:
        svg = picture.pipe(format="svg", encoding="utf-8")
    except graphviz.ExecutableNotFound as error:
        raise GraphError(
            "Drawing a graph needs Graphviz's program `dot`: install the Debian package `graphviz` "
            "(`apt-get install graphviz`), or read the graph with `table(gm)`."
        ) from error
    return svg[svg.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{html.escape(alt, quote=True)}"', 1)


def _kind(node: torch.fx.Node) -> str:
    """Return the word for a node; what a call such as `torch.cond` gets as a branch is no parameter but a graph."""
    held = getattr(node.graph.owning_module, str(node.target), None) if node.op == "get_attr" else None
    return "graph" if isinstance(held, torch.fx.GraphModule) else STYLES[node.op][0]


def _calls(node: torch.fx.Node) -> str:
    if not node.op.startswith("call_"):
        return ""
    short = operator_name(node).rpartition(".")[2] if node.op == "call_module" else _short(operator_name(node))
    return f"{short} ({node.target})" if node.op == "call_module" else short


def _short(name: str) -> str:
    for prefix in ("torch.nn.functional.", "torch.ops.", "operator.", "torch."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def _text(gm: torch.fx.GraphModule) -> str:
    lines = []
    for node in gm.graph.nodes:
        operands = ", ".join(operand.name for operand in node.all_input_nodes)
        facts = [_kind(node), _calls(node), describe(node), f"from {operands}" if operands else ""]
        lines.append(f"{node.name}: {' · '.join(filter(None, facts))}")
    return "\n".join(lines)
