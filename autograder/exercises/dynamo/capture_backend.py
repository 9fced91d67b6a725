"""Exercise 07.5: write a backend that collects every graph from Dynamo, and changes nothing."""

from collections.abc import Callable

import torch

from autograder.host.checks.collected_graph_checks import (
    Piece,
    Source,
    collect,
    require_pieces,
    require_results,
    require_shapes,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import CapturedAnswer

WHOLE = Source(
    "smooth",
    "def smooth(x, y):\n    h = (x + y).relu()\n    return h * 0.5 + x\n",
    lambda x, y: (x + y).relu() * 0.5 + x,
    lambda draw: [Case((draw.normal(3, 4), draw.normal(3, 4)))],
    [Piece(lambda x, y: (x + y).relu() * 0.5 + x, ((3, 4), (3, 4)))],
)
BROKEN = Source(
    "noisy",
    "import torch\n\ndef noisy(x):\n    h = x.sin() + 1\n    torch._dynamo.graph_break()\n    return h.exp() * 2\n",
    lambda x: (x.sin() + 1).exp() * 2,
    lambda draw: [Case((draw.normal(5),))],
    [Piece(lambda x: x.sin() + 1, ((5,),)), Piece(lambda h: h.exp() * 2, ((5,),))],
)
BY_NAME = Source(
    "mixed",
    "def mixed(x, *, weight):\n    return x @ weight - x.mean()\n",
    lambda x, *, weight: x @ weight - x.mean(),
    lambda draw: [Case((draw.normal(4, 4),), {"weight": draw.normal(4, 2)})],
    [Piece(lambda x, weight: x @ weight - x.mean(), ((4, 4), (4, 2)))],
)
RECOMPILED = Source(
    "wide",
    "def wide(x):\n    return x.cos() / 2\n",
    lambda x: x.cos() / 2,
    lambda draw: [Case((draw.normal(3, dtype=d),)) for d in (torch.float32, torch.float32, torch.float64)],
    [Piece(lambda x: x.cos() / 2, ((3,),))] * 2,
)
UNASKED = "The backend was not asked: Dynamo keeps what it compiled for a function. Reset it first."


def collects(*sources: Source, shapes: bool = False) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that, for each program in turn, the right graphs are collected and the results are right."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for source in sources:
            cases = source.calls(draw)
            found = collect(answer, source, cases)
            require_results(found, source, cases)
            try:
                require_pieces(answer, found, source, draw)
            except CheckFailedError as error:
                raise CheckFailedError(_explained(str(error), len(found.graphs), source)) from None
            if shapes:
                require_shapes(found, source)

    return run


def _explained(said: str, graphs: int, source: Source) -> str:
    """Add the likely mistake to a message, if the number of graphs shows it."""
    if graphs == 0:
        return f"{said} {UNASKED}"
    if graphs == 1 and len(source.pieces) == 2:
        return f"{said} Only one was kept: add to a list, since Dynamo calls the backend once for each graph."
    if graphs == len(source.calls(Draw(0, ""))) > len(source.pieces):
        return f"{said} One was kept for each call: keep them when the backend is called, not when the graph runs."
    if graphs > len(source.pieces):
        return f"{said} Graphs of an earlier call of collect are among them: begin with an empty list each time."
    return said


EXERCISE = Exercise(
    title="A backend that keeps graphs",
    kind=Kind.CAPTURED,
    entry_point="collect",
    points=9,
    masked=("course_lib.backends", "course_lib.capture"),
    hints=(
        "A backend is a function of (graph_module, example_inputs) that returns what is to be called in its place.",
        "Write the backend inside collect, so that it can append to a list that belongs to this call.",
        "torch._dynamo.reset() comes first; then compiled = torch.compile(function, backend=...), and one call each.",
    ),
    checks=(
        Check("one whole graph, and the right result", "one graph", 2.2, collects(WHOLE)),
        Check("both graphs around a break, in order", "two graphs", 1.8, collects(BROKEN)),
        Check("the shapes of the example inputs", "shapes", 1.4, collects(WHOLE, BROKEN, shapes=True)),
    ),
)
