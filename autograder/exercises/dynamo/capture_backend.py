"""Exercise 07.5: write a backend that collects every graph from Dynamo, and doubles what each gives.

The results show that the answer's own backend ran: in a program with a break, nothing but a backend doubles what the
next graph gets. A recorder of PyTorch's own changes nothing, and a replay of its graphs by hand leaves out what Python
computes between two of them.
"""

from collections.abc import Callable
from dataclasses import dataclass

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

NAMES = ("smooth", "noisy", "mixed", "wide", "gate", "blend")
BREAKS = ("torch._dynamo.graph_break()", 'print("step")')
STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "h.sin()": torch.sin,
    "h.cos()": torch.cos,
    "h.tanh()": torch.tanh,
    "h.relu() + h": lambda h: h.relu() + h,
    "h - h.mean()": lambda h: h - h.mean(),
    "torch.sigmoid(h)": torch.sigmoid,
    "h.abs() + 1": lambda h: h.abs() + 1,
}
JOINTS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "x + y": torch.add,
    "x - y": torch.sub,
    "x * y": torch.mul,
}


@dataclass(frozen=True)
class Chain:
    """A few random steps on a tensor h, as lines of a program and as a function."""

    lines: tuple[str, ...]
    factor: float

    @classmethod
    def drawn(cls, draw: Draw) -> "Chain":
        """Return two to four different steps, and a factor of the last result."""
        return cls(tuple(draw.sample(tuple(STEPS), draw.integer(2, 4))), draw.integer(3, 40) / 8)

    @property
    def text(self) -> str:
        """Return the lines of a function's body."""
        return "".join(f"    h = {line}\n" for line in (*self.lines, f"h * {self.factor}"))

    def __call__(self, h: torch.Tensor) -> torch.Tensor:
        """Return what the lines make of h."""
        for line in self.lines:
            h = STEPS[line](h)
        return h * self.factor


@dataclass(frozen=True)
class Break:
    """A line of a program where one graph ends, and what it does to h in Python."""

    line: str
    factor: float = 1.0
    summand: float = 0.0

    @classmethod
    def drawn(cls, draw: Draw, *, writes: bool = True) -> "Break":
        """Return a call of a function that writes to h, which no graph and no name shows; or a line that does nothing.

        No step gives the same for the h before and after it, since its sign and its mean change.
        """
        if writes:
            return cls("between(h)", -draw.integer(3, 9) / 2, draw.integer(2, 9) / 4)
        return cls(draw.choice(BREAKS))

    @property
    def text(self) -> str:
        """Return the line in a function's body."""
        return f"    {self.line}\n"

    @property
    def function(self) -> str:
        """Return the text of the function that the line calls."""
        return f"@torch._dynamo.disable\ndef between(h):\n    h.mul_({self.factor}).add_({self.summand})\n\n"

    def __call__(self, h: torch.Tensor) -> torch.Tensor:
        """Return what h is behind the line."""
        return h * self.factor + self.summand


def whole(draw: Draw) -> Source:
    """Return a program of two inputs that is one graph."""
    name, steps, joint, shape = draw.choice(NAMES), Chain.drawn(draw), draw.choice(tuple(JOINTS)), _shape(draw)

    def formula(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return steps(JOINTS[joint](x, y)) + x

    text = f"import torch\n\ndef {name}(x, y):\n    h = {joint}\n{steps.text}    return h + x\n"
    return Source(
        name,
        text,
        lambda x, y: 2 * formula(x, y),
        lambda draw: [Case((draw.normal(*shape), draw.normal(*shape)))],
        [Piece(formula, (shape, shape))],
    )


def broken(draw: Draw) -> Source:
    """Return a program with one or two breaks, which reads its input once more behind the last."""
    name, shape = draw.choice(NAMES), (draw.integer(3, 9),)
    *parts, last = [Chain.drawn(draw) for _ in range(draw.integer(2, 3))]
    writing = draw.integer(0, len(parts) - 1)
    breaks = [Break.drawn(draw, writes=i == writing) for i in range(len(parts))]
    text = "".join(part.text + after.text for part, after in zip(parts, breaks, strict=True)) + last.text

    def formula(x: torch.Tensor) -> torch.Tensor:
        h = x
        for part, after in zip(parts, breaks, strict=True):
            h = after(2 * part(h))
        return 2 * (last(h) - x)

    return Source(
        name,
        f"import torch\n\n{breaks[writing].function}def {name}(x):\n    h = x\n{text}    return h - x\n",
        formula,
        lambda draw: [Case((draw.normal(*shape),))],
        [*(Piece(part, (shape,)) for part in parts), Piece(lambda h, x: last(h) - x, (shape, shape))],
    )


def by_name(draw: Draw) -> Source:
    """Return a program with an input by name, and a break."""
    name, steps, (rows, width) = draw.choice(NAMES), Chain.drawn(draw), _shape(draw)
    after = Break.drawn(draw)
    lines = f"    h = x @ weight\n{steps.text}{after.text}    return x.mean() - h\n"
    return Source(
        name,
        f"import torch\n\n{after.function}def {name}(x, *, weight):\n{lines}",
        lambda x, weight: 2 * (x.mean() - after(2 * steps(x @ weight))),
        lambda draw: [Case((draw.normal(rows, width),), {"weight": draw.normal(width, 2)})],
        [
            Piece(lambda x, weight: steps(x @ weight), ((rows, width), (width, 2))),
            Piece(lambda x, h: x.mean() - h, ((rows, width), (rows, 2))),
        ],
    )


def recompiled(draw: Draw) -> Source:
    """Return a program with a break that is called with two dtypes."""
    name, first, second, shape = draw.choice(NAMES), Chain.drawn(draw), Chain.drawn(draw), (draw.integer(3, 9),)
    dtypes, after = (torch.float32, torch.float32, torch.float64), Break.drawn(draw)
    return Source(
        name,
        f"import torch\n\n{after.function}def {name}(h):\n{first.text}{after.text}{second.text}    return h\n",
        lambda h: 2 * second(after(2 * first(h))),
        lambda draw: [Case((draw.normal(*shape, dtype=dtype),)) for dtype in dtypes],
        [Piece(first, (shape,)), Piece(second, (shape,))] * 2,
    )


def _shape(draw: Draw) -> tuple[int, int]:
    return draw.integer(2, 6), draw.integer(2, 6)


UNASKED = "The backend was not asked: Dynamo keeps what it compiled for a function. Reset it first."


Drawn = Callable[[Draw], Source]


def collects(*sources: Drawn, again: bool = False, shapes: bool = False) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that, for each program in turn, the right graphs are collected and the results are right.

    The programs are drawn, so that no table of graphs answers for them. With `again` the first one comes once more.
    """

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        programs = [source(draw) for source in sources]
        for source in (*programs, *programs[: int(again)]):
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
    if graphs == 1 and len(source.pieces) > 1:
        return f"{said} Only one was kept: add to a list, since Dynamo calls the backend once for each graph."
    calls = len(source.calls(Draw(0, "")))
    if calls > 1 and graphs > len(source.pieces) and not graphs % calls:
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
        "A backend is a function of (graph_module, example_inputs) that returns what is called in the graph's place: "
        "here a function that calls it, and doubles each item of the tuple that comes back.",
        "Write the backend inside collect, so that it can append to a list that belongs to this call.",
        "torch._dynamo.reset() comes first; then compiled = torch.compile(function, backend=...), and one call each.",
    ),
    checks=(
        Check("one whole graph, and the right result", "one graph", 1, collects(whole)),
        Check("the graphs around breaks, in order", "two graphs", 2, collects(broken)),
        Check("the shapes of the example inputs", "shapes", 2, collects(whole, broken, shapes=True)),
    ),
)
