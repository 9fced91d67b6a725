"""Exercise 10.1: write a backend that computes one operator in another way, and keeps what it compiled."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.host.checks.collected_graph_checks import (
    Collected,
    Piece,
    Source,
    collect,
    require_given,
    require_pieces,
    require_results,
    require_shapes,
)
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case
from autograder.host.kinds.captured import CapturedAnswer
from autograder.host.kinds.graph import times

NAMES = ("gate", "filter", "mixed", "level", "score", "blend")
BESIDE = ("plainly", "apart", "eagerly", "untouched", "aside")
STEPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "torch.sin(h)": torch.sin,
    "h * 0.5 + 1": lambda h: h * 0.5 + 1,
    "h.cos()": torch.cos,
    "h - h.mean()": lambda h: h - h.mean(),
    "torch.sigmoid(h)": torch.sigmoid,
}


def softsign(x: torch.Tensor) -> torch.Tensor:
    """Return x / (1 + |x|), which the backend computes for each tanh."""
    return x / (1 + x.abs())


def text_of(name: str, beside: str, arguments: str, lines: str) -> str:
    """Return a program with a function that Dynamo leaves alone, which gets its tanh from the program.

    So a program in which another function stands for tanh has other results than a backend that changes graphs.
    """
    outside = f"@torch._dynamo.disable\ndef {beside}(function, h):\n    return function(h)\n"
    return f"import torch\n\n{outside}\ndef {name}({arguments}):\n{lines}"


Formula = Callable[[torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Chain:
    """A few random steps on a tensor h, as lines of a program and as a function; `saturate` stands for tanh."""

    lines: tuple[str, ...]
    factor: float

    @classmethod
    def drawn(cls, draw: Draw) -> "Chain":
        """Return two or three different steps, one or two tanh between them, and a factor of the last result."""
        steps = draw.sample(tuple(STEPS), draw.integer(2, 3))
        for _ in range(draw.integer(1, 2)):
            steps.insert(draw.integer(0, len(steps)), "torch.tanh(h)")
        return cls(tuple(steps), draw.integer(3, 40) / 8)

    @property
    def text(self) -> str:
        """Return the lines of a function's body."""
        return "".join(f"    h = {line}\n" for line in (*self.lines, f"h * {self.factor}"))

    def __call__(self, h: torch.Tensor, saturate: Formula = softsign) -> torch.Tensor:
        """Return what the lines make of h."""
        for line in self.lines:
            h = STEPS[line](h) if line in STEPS else saturate(h)
        return h * self.factor


def _given(formula: Callable[..., Any]) -> Callable[..., Any]:
    """Return what Dynamo's graph computes before a backend has changed it."""
    return functools.partial(formula, saturate=torch.tanh)


def whole(draw: Draw) -> Source:
    """Return a program of two inputs that is one graph."""
    name, steps, shape = draw.choice(NAMES), Chain.drawn(draw), (draw.integer(2, 6), draw.integer(2, 6))
    beside = draw.choice(BESIDE)

    def formula(x: torch.Tensor, y: torch.Tensor, saturate: Formula = softsign) -> torch.Tensor:
        return steps(x * y, saturate) + saturate(y)

    return Source(
        name,
        text_of(
            name,
            beside,
            "x, y",
            f"    h = x * y\n{steps.text}    return {beside}(torch.tanh, h + torch.tanh(y))\n",
        ),
        lambda x, y: torch.tanh(formula(x, y)),
        lambda draw: [Case((draw.normal(*shape), draw.normal(*shape))) for _ in range(2)],
        [Piece(formula, (shape, shape), _given(formula))],
    )


def several_outputs(draw: Draw) -> Source:
    """Return a program with a break at which two tensors are alive, so that the first graph has two outputs."""
    name, beside, shape = draw.choice(NAMES), draw.choice(BESIDE), (draw.integer(3, 9),)
    first, second = Chain.drawn(draw), Chain.drawn(draw)

    def before(h: torch.Tensor, saturate: Formula = softsign) -> tuple[torch.Tensor, torch.Tensor]:
        return first(h, saturate), saturate(h) + 1

    def after(h: torch.Tensor, kept: torch.Tensor, saturate: Formula = softsign) -> torch.Tensor:
        return second(h, saturate) * kept

    def whole_call(h: torch.Tensor) -> torch.Tensor:
        broken, kept = before(h)
        return after(torch.tanh(broken), kept)

    lines = f"    kept = torch.tanh(h) + 1\n{first.text}    h = {beside}(torch.tanh, h)\n{second.text}"
    return Source(
        name,
        text_of(name, beside, "h", f"{lines}    return h * kept\n"),
        whole_call,
        lambda draw: [Case((draw.normal(*shape),)) for _ in range(2)],
        [Piece(before, (shape,), _given(before)), Piece(after, (shape, shape), _given(after))],
    )


def by_name(draw: Draw) -> Source:
    """Return a program with an input by name."""
    name, beside, steps = draw.choice(NAMES), draw.choice(BESIDE), Chain.drawn(draw)
    rows, width = draw.integer(2, 6), draw.integer(2, 6)

    def formula(x: torch.Tensor, weight: torch.Tensor, saturate: Formula = softsign) -> torch.Tensor:
        return steps(x @ weight, saturate) - x.mean()

    return Source(
        name,
        text_of(
            name,
            beside,
            "x, *, weight",
            f"    h = x @ weight\n{steps.text}    return {beside}(torch.tanh, h - x.mean())\n",
        ),
        lambda x, weight: torch.tanh(formula(x, weight)),
        lambda draw: [Case((draw.normal(rows, width),), {"weight": draw.normal(width, 2)})],
        [Piece(formula, ((rows, width), (width, 2)), _given(formula))],
    )


def batches(draw: Draw) -> Source:
    """Return a program that is called with several batch sizes: the second graph leaves the size open."""
    name, beside, steps, width = draw.choice(NAMES), draw.choice(BESIDE), Chain.drawn(draw), draw.integer(3, 7)
    sizes = draw.sample(range(2, 40), 4)
    return Source(
        name,
        text_of(name, beside, "h", f"{steps.text}    return {beside}(torch.tanh, h)\n"),
        lambda h: torch.tanh(steps(h)),
        lambda draw: [Case((draw.normal(size, width),)) for size in sizes],
        [Piece(steps, ((sizes[0], width),), _given(steps))],
    )


Drawn = Callable[[Draw], Source]
Run = Callable[[CapturedAnswer, Draw], None]


def replaced(*sources: Drawn, again: bool = False, shapes: bool = False) -> Run:
    """Return a check that graphs and results compute softsign for tanh; with `again` the first program returns."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        programs = [source(draw) for source in sources]
        for source in (*programs, *programs[: int(again)]):
            cases = source.calls(draw)
            found = collect(answer, source, cases)
            _require_results(found, source, cases)
            _require_closed_sizes(found, source)
            require_pieces(answer, found, source, draw)
            if shapes:
                require_shapes(found, source)

    return run


def _require_results(found: Collected, source: Source, cases: Sequence[Case]) -> None:
    """Require the results, and say if they are those of the unchanged program."""
    try:
        require_results(found, source, cases)
    except CheckFailedError as error:
        if left := _tanh_beside_others(found):
            raise CheckFailedError(
                f"For `{source.name}`: a graph has a new formula and still calls tanh {times(left)}. Replace "
                "every tanh of a graph."
            ) from None
        if _gives_tanh(found):
            raise CheckFailedError(
                f"For `{source.name}`: what runs computes tanh. The graph was returned as it came, or changed after "
                "its code was generated: recompile() writes the code again."
            ) from None
        raise error


def _require_closed_sizes(found: Collected, source: Source) -> None:
    """Require that no graph has an open size among its inputs."""
    for number, (graph, piece) in enumerate(zip(found.graphs, source.pieces, strict=False)):
        if graph.inputs > len(piece.inputs):
            raise CheckFailedError(
                f"For `{source.name}`: graph {number} takes {graph.inputs} inputs; expected {len(piece.inputs)}. Sizes "
                "were left open from the start, as dynamic=True does; leave that to Dynamo."
            )


def _tanh_beside_others(found: Collected) -> int:
    """Return how often a graph calls tanh in which another one was replaced by its formula; 0 without such a graph."""
    called = [[call.operator for call in graph.called.values()] for graph in found.graphs]
    changed = [names for names in called if any("abs" in name for name in names)]
    return max((sum("tanh" in name for name in names) for names in changed), default=0)


def _gives_tanh(found: Collected) -> bool:
    """Tell whether a graph that was collected still calls tanh, or none was collected."""
    return not found.graphs or any("tanh" in call.operator for graph in found.graphs for call in graph.called.values())


def open_batch(answer: CapturedAnswer, draw: Draw) -> None:
    """Check results for several batch sizes, and that the second of two graphs has an open size."""
    source = batches(draw)
    cases = source.calls(draw)
    found = collect(answer, source, cases)
    _require_results(found, source, cases)
    if len(found.graphs) != 2:
        raise CheckFailedError(
            f"For `{source.name}`, called with {len(cases)} batch sizes: {len(found.graphs)} graphs were kept; Dynamo "
            "makes two, the second for any size."
        )
    require_shapes(replace(found, shapes=found.shapes[:1]), source)
    require_given(answer, found, 0, source, [draw.normal(*shape) for shape in source.pieces[0].inputs])
    expected = [[], list(cases[1].args[0].shape)]
    if list(map(list, found.shapes[1])) != expected:
        raise CheckFailedError(
            f"For `{source.name}`: the second graph was kept with the shapes {[list(s) for s in found.shapes[1]]}; "
            f"expected {expected}: the open size is an input of its own, a number, and has the empty shape."
        )


EXERCISE = Exercise(
    title="A backend that computes in its own way",
    kind=Kind.CAPTURED,
    entry_point="approximate",
    points=8,
    masked=("course_lib.backends", "course_lib.capture"),
    hints=(
        "The backend gets a graph module and example inputs. What it returns runs at each call: change the graph "
        "before, once.",
        "For each node of `graph_module.graph.find_nodes(op='call_function', target=torch.tanh)`: insert three nodes "
        "before it, replace all its uses, erase it. Then `recompile()`.",
        "Keep the graph and the shapes once, in the backend, in a list that belongs to this call. An open size is an "
        "input of its own, a number: `tuple(getattr(value, 'shape', ()))`.",
    ),
    checks=(
        Check("one graph, and what it computes", "one graph", 2, replaced(whole)),
        Check("graphs with several outputs", "several outputs", 1.5, replaced(several_outputs)),
        Check("the shapes of the example inputs", "shapes", 1, replaced(whole, several_outputs, shapes=True)),
    ),
)
