"""Random fused regions: what one kernel is to compute, in the form that `course_lib.machine.assembly` describes."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.exercises.questions import Question
from autograder.host.draw import Draw
from course_lib.machine import Region

UNARY = ("neg", "abs", "tanh", "sigmoid")
BINARY = ("add", "sub", "mul", "max", "min")
ROWWISE = ("sum.row", "max.row")
NUMBERS = (0.5, -1.5, 2, 3, 0.25)
STEEP = 4  # products of so many factors at most, so that values stay small
OPERATORS: Mapping[str, Callable[..., torch.Tensor]] = {
    "neg": torch.neg,
    "abs": torch.abs,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "rsqrt": torch.rsqrt,
    "relu": torch.relu,
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": lambda a, b: torch.maximum(a, torch.as_tensor(b, dtype=a.dtype)),
    "min": lambda a, b: torch.minimum(a, torch.as_tensor(b, dtype=a.dtype)),
    "sum.row": lambda a: a.sum(-1, keepdim=True).expand(a.shape),
    "max.row": lambda a: a.amax(-1, keepdim=True).expand(a.shape),
    "mean.row": lambda a: a.mean(-1, keepdim=True).expand(a.shape),
}
"""What each operator of a region computes on values that have the shape of the space."""
LAYOUTS: Mapping[str, Callable[[list[int]], tuple[list[int], list[int]]]] = {
    "whole": lambda space: (space, contiguous(space)),
    "columns": lambda space: (space[-1:], [1]),
    "rows": lambda space: ([*space[:-1], 1], contiguous([*space[:-1], 1])),
    "number": lambda space: ([], []),
    "transposed": lambda space: (space, contiguous(space[::-1])[::-1]),
    "padded": lambda space: (space, contiguous([*space[:-1], space[-1] + 3])),
    "a table of one row": lambda space: ([1, *space[1:]], contiguous([1, *space[1:]])),
}
"""Shape and strides of an input by its layout, from the shape of the space."""


def contiguous(shape: Sequence[int]) -> list[int]:
    """Return the strides of a tensor that has no gaps.

    >>> contiguous([4, 2, 3])
    [6, 3, 1]
    """
    strides = [1]
    for size in reversed(shape[1:]):
        strides.insert(0, strides[0] * size)
    return strides[: len(shape)]


@dataclass(frozen=True)
class Wish:
    """Settings of a random region."""

    nodes: int
    registers: int = 8
    open: int = 3  # values that wait for their reader, about
    inputs: int = 3
    layouts: tuple[str, ...] = ("whole",)
    operators: tuple[str, ...] = (*UNARY, *BINARY)
    again: float = 0.2  # how likely an operand was read before
    rank: int = 2
    ones: bool = False  # one dimension of the space has size 1
    outputs: int = 1  # at least; what nobody reads is one, too
    dead: bool = False  # one node is read by nobody and is no output
    must: tuple[str, ...] = ()  # operators that occur
    row_output: bool = False  # an output has one element for each row; without it none has


@dataclass
class _Nodes:
    """The nodes of a region while it is drawn."""

    draw: Draw
    wish: Wish
    inputs: list[str]
    nodes: list[list[Any]] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    steep: dict[str, int] = field(default_factory=dict)

    def add(self, op: str, *reads: str | float) -> str:
        """Add a node and return its name."""
        name = f"t{len(self.nodes)}"
        degrees = [self.steep.get(read, 1) for read in reads if isinstance(read, str)]
        bounded = op in ("tanh", "sigmoid")
        self.steep[name] = 1 if bounded else sum(degrees) if op == "mul" else max(degrees)
        self.nodes.append([name, op, list(reads)])
        self.waiting = [*(each for each in self.waiting if each not in reads), name]
        return name

    def grow(self, ends: bool) -> None:
        """Add one node; where `ends`, one that reads what waits."""
        wish, draw = self.wish, self.draw
        joins = len(self.waiting) >= wish.open or (ends and len(self.waiting) > 1)
        op = draw.choice([op for op in wish.operators if op in BINARY] if joins else wish.operators)
        first = draw.choice(self.waiting if joins or (ends and self.waiting) else self.inputs)
        if op not in BINARY:
            self.add(op, first)
            return
        others = [each for each in self.waiting if each != first] if joins else self.inputs
        made = [node[0] for node in self.nodes]
        again = bool(made) and draw.chance(wish.again)
        second: str | float = draw.choice([*made, *self.inputs] if again else others)
        if not joins and draw.chance(0.2):
            second = draw.choice(NUMBERS)
        pair = draw.sample([first, second], 2) if isinstance(second, str) else [first, second]
        degrees = [self.steep.get(each, 1) for each in pair if isinstance(each, str)]
        self.add("add" if op == "mul" and sum(degrees) > STEEP else op, *pair)


def random_region(draw: Draw, wish: Wish) -> Question:
    """Return a random region with random names that reads all its inputs."""
    while True:
        region = _region(draw, wish)
        read = {read for _, _, reads in region["nodes"] for read in reads}
        rowwise = {name for name, op, _ in region["nodes"] if op.endswith(".row")}
        made = {op for _, op, _ in region["nodes"]}
        as_wished = {*wish.must} <= made and wish.row_output == bool(rowwise & region["outputs"].keys())
        if as_wished and region["inputs"].keys() <= read:
            return renamed(draw, region)


def _region(draw: Draw, wish: Wish) -> Question:
    space = draw.sample(range(3, 8), wish.rank)
    if wish.ones:
        space[draw.integer(0, wish.rank - 1)] = 1
    inputs = [f"x{number}" for number in range(wish.inputs)]
    made = _Nodes(draw, wish, inputs)
    while len(made.nodes) < wish.nodes or len(made.waiting) > wish.outputs:
        made.grow(len(made.nodes) >= wish.nodes - wish.open)
    names = [node[0] for node in made.nodes]
    inner = [name for name in names if name not in made.waiting]
    outputs = [*made.waiting, *draw.sample(inner, max(0, wish.outputs - len(made.waiting)))]
    if wish.dead:
        made.nodes.insert(draw.integer(1, len(made.nodes)), ["dead", "neg", [draw.choice(inputs)]])
    layouts = [*draw.sample(wish.layouts, min(len(wish.layouts), wish.inputs))]
    layouts += [draw.choice(wish.layouts) for _ in range(wish.inputs - len(layouts))]
    given = dict(zip(inputs, [list(LAYOUTS[layout](space)) for layout in layouts], strict=True))
    return region_of(space, wish.registers, given, made.nodes, outputs)


def region_of(
    space: list[int], registers: int, inputs: Mapping[str, Any], nodes: list[list[Any]], outputs: Sequence[str]
) -> Question:
    """Return a region; an output that is a reduction has one element for each row."""
    rowwise = {name for name, op, _ in nodes if op.endswith(".row")}
    layout = {name: LAYOUTS["rows" if name in rowwise else "whole"](space) for name in outputs}
    return {
        "registers": registers,
        "space": space,
        "inputs": dict(inputs),
        "nodes": nodes,
        "outputs": {name: [list(part) for part in layout[name]] for name in outputs},
    }


def normalised_rows(draw: Draw, registers: int) -> Question:
    """Return layer norm after a bias and a residual, as at the end of BERT's block; all inputs are expanded."""
    space = draw.sample(range(3, 8), 2)
    names = ("x", "bias", "residual", "weight", "shift")
    nodes: list[list[Any]] = [
        ["h", "add", ["x", "bias"]],
        ["sum", "add", ["h", "residual"]],
        ["mean", "mean.row", ["sum"]],
        ["centred", "sub", ["sum", "mean"]],
        ["squares", "mul", ["centred", "centred"]],
        ["variance", "mean.row", ["squares"]],
        ["safe", "add", ["variance", 0.125]],
        ["scale", "rsqrt", ["safe"]],
        ["normal", "mul", ["centred", "scale"]],
        ["weighted", "mul", ["normal", "weight"]],
        ["result", "add", ["weighted", "shift"]],
    ]
    inputs = {name: list(LAYOUTS["whole"](space)) for name in names}
    return renamed(draw, region_of(space, registers, inputs, nodes, ["result"]))


def renamed(draw: Draw, region: Question) -> Question:
    """Return the region with random names, from which nothing can be read."""
    old = [*region["inputs"], *(node[0] for node in region["nodes"])]
    new: dict[Any, str] = dict(zip(old, draw.sample([f"v{i}" for i in range(3 * len(old))], len(old)), strict=True))
    return {
        **region,
        "inputs": {new[name]: layout for name, layout in region["inputs"].items()},
        "nodes": [[new[name], op, [new.get(read, read) for read in reads]] for name, op, reads in region["nodes"]],
        "outputs": {new[name]: layout for name, layout in region["outputs"].items()},
    }


def arguments_of(region: Region, draw: Draw) -> list[torch.Tensor]:
    """Return random inputs of a region in its layouts."""
    found = []
    for shape, strides in region["inputs"].values():
        tensor = torch.empty_strided(shape, strides, dtype=torch.float64)
        found.append(tensor.copy_(draw.normal(*shape, dtype=torch.float64)))
    return found


def results_of(
    region: Region,
    arguments: Sequence[torch.Tensor],
    **instead: Callable[..., torch.Tensor],
) -> list[torch.Tensor]:
    """Return the outputs of a region; `instead` names operators that compute something else, "." written as "_"."""
    operators = {**OPERATORS, **{name.replace("_", "."): function for name, function in instead.items()}}
    values: dict[Any, Any] = {
        name: value.expand(region["space"]) for name, value in zip(region["inputs"], arguments, strict=True)
    }
    for name, op, reads in region["nodes"]:
        values[name] = operators[op](*(values.get(read, read) for read in reads))
    return [values[name][tuple(slice(size) for size in shape)] for name, (shape, _) in region["outputs"].items()]
