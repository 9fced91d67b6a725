"""Draw docs/picture.svg: a graph before fusion, the student's pass behind the trust boundary, the graph that is graded.

    PYTHONPATH=. python scripts/draw_picture.py

The library captures and fuses the graphs, and `cost` counts the launches and bytes.
"""

from collections.abc import Iterator
from html import escape
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import fx

from course_lib.capture import capture
from course_lib.fusion import fuse_bias_gelu
from course_lib.graph import cost, propagate_shapes

PICTURE = Path(__file__).resolve().parents[1] / "docs" / "picture.svg"
INPUTS = (torch.zeros(512, 768), torch.zeros(768))
WIDTH, HEIGHT = 960, 380
NODE_WIDTH, NODE_HEIGHT, ROW = 132, 34, 66
COLOURS = {"placeholder": "#e8eef7", "call_function": "#fde9c9", "output": "#e3f1e1"}
STYLE = """
  text { font: 15px system-ui, sans-serif; fill: #1d2733; text-anchor: middle }
  .title { font-weight: 600 }  .small { font-size: 13px; fill: #4a5868 }  .code { font: 14px ui-monospace, monospace }
  .edge { stroke: #4a5868; stroke-width: 1.5; fill: none; marker-end: url(#arrow) }
"""
ARROW = (
    '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0 L8 4 L0 8 z" fill="#4a5868"/></marker>'
)


class BiasGelu(torch.nn.Module):
    """The program that is fused in the picture: a bias, then GELU."""

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        """Return gelu(x + bias)."""
        return F.gelu(x + bias)


def text(x: float, y: float, words: str, kind: str = "") -> str:
    """Return one centred line of text."""
    return f'<text x="{x}" y="{y}" class="{kind}">{escape(words)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, stroke: str) -> str:
    """Return a rounded rectangle whose upper left corner is at (x, y)."""
    return f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="8" fill="{fill}" stroke="{stroke}"/>'


def edge(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return an arrow."""
    return f'<path class="edge" d="M{x1} {y1} L{x2} {y2}"/>'


def label(node: fx.Node) -> str:
    """Return the node's label: an argument's name, or the operator without its package."""
    if node.op in ("placeholder", "output"):
        return node.name
    name: str = getattr(node.target, "__name__", str(node.target))
    return name.removesuffix(".default")


def positions(graph: fx.Graph, centre: float, top: float) -> dict[fx.Node, tuple[float, float]]:
    """Return the centre of each node: the arguments side by side in the first row, then one node per row."""
    arguments = [node for node in graph.nodes if node.op == "placeholder"]
    others = [node for node in graph.nodes if node.op != "placeholder"]
    left = centre - (len(arguments) - 1) * 75
    placed = {node: (left + 150 * column, top) for column, node in enumerate(arguments)}
    return placed | {node: (centre, top + ROW * row) for row, node in enumerate(others, start=1)}


def draw_graph(graph: fx.Graph, centre: float, top: float) -> Iterator[str]:
    """Yield the SVG elements of a graph whose first row is centred at (centre, top)."""
    placed = positions(graph, centre, top)
    for node, (x, y) in placed.items():
        for source in node.all_input_nodes:
            yield edge(placed[source][0], placed[source][1] + NODE_HEIGHT / 2, x, y - NODE_HEIGHT / 2 - 2)
    for node, (x, y) in placed.items():
        fill = COLOURS.get(node.op, COLOURS["call_function"])
        yield box(x - NODE_WIDTH / 2, y - NODE_HEIGHT / 2, NODE_WIDTH, NODE_HEIGHT, fill, "#4a5868")
        yield text(x, y + 5, label(node), "code")


def counted(module: fx.GraphModule) -> str:
    """Return the host's counts for a graph on INPUTS, as text."""
    spent = cost(module, INPUTS)
    launches = f"{spent.launches} launch" + ("es" if spent.launches != 1 else "")
    return f"{launches}, {spent.bytes_moved / 1e6:.1f} MB moved"


def elements() -> Iterator[str]:
    """Yield everything in the picture."""
    before = capture(BiasGelu()).graph_module
    propagate_shapes(before, INPUTS)
    fused = fuse_bias_gelu(before)
    assert fused.num_matches == 1, fused.rejected
    after = fused.graph_module
    yield box(10, 10, 300, 360, "#f7f9fc", "#c3cddb")
    yield text(160, 40, "The program, captured", "title")
    yield from draw_graph(before.graph, 160, 90)
    yield text(160, 350, counted(before), "small")
    yield box(352, 95, 208, 150, "#fbeeee", "#b5483f")
    yield text(456, 127, "Sandbox", "title")
    for row, words in enumerate(("the student's pass runs here,", "without clock, seed,", "answers or gradebook")):
        yield text(456, 160 + 24 * row, words, "small")
    yield edge(312, 170, 348, 170)
    yield box(650, 10, 300, 360, "#f4faf3", "#4f8a4a")
    yield text(800, 40, "Host: rebuilds, checks, counts", "title")
    yield from draw_graph(after.graph, 800, 90)
    yield text(800, 350, counted(after), "small")
    yield edge(562, 170, 646, 170)
    yield text(604, 160, "graph", "small")
    yield text(604, 190, "as data", "small")


def picture() -> str:
    """Return the whole SVG."""
    title = "A captured graph crosses into the sandbox; the fused graph comes back as data, and the host grades that."
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}">\n'
        f"<title>{title}</title>\n<style>{STYLE}</style>\n<defs>{ARROW}</defs>\n"
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n' + "\n".join(elements()) + "\n</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture(), encoding="utf-8")
    print(f"{PICTURE.name}: {PICTURE.stat().st_size} bytes")
