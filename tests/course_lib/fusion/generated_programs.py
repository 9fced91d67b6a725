"""Programs that nobody wrote, for passes to be tried on: seeds that must fuse, spelt anew and edited.

A seed is a short program that a pass fuses. Each of its steps can be spelt in many ways, and unrelated work can stand
between the steps: all that keeps the meaning, and the pass must still fire. An edit changes the meaning: a factor, a
write in between, a second reader. Then the pass may do what it likes, as long as the program computes what it says.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

Tensor = torch.Tensor
NAMES = ("x", "b", "r", "m")  # inputs of every program: rows, a bias, a residual, a matrix


@dataclass(frozen=True)
class Step:
    """One line of a program: `{target} = {operator}({operands})`."""

    target: str
    operator: str
    operands: tuple[str, ...]


@dataclass(frozen=True)
class Seed:
    """A program that a pass must fuse."""

    name: str  # that of the pass
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Program:
    """A generated program, with inputs to run it on."""

    seed: Seed
    module: nn.Module
    inputs: tuple[Tensor, ...]
    source: str
    edit: str  # what changed the meaning, or "" if nothing did
    mode: str = field(default="eval")

    @property
    def must_fuse(self) -> bool:
        """Whether the pass has to fire: nothing changed the meaning of the seed."""
        return not self.edit


SEEDS = (
    Seed("bias_gelu", (Step("s1", "add", ("x", "b")), Step("y", "gelu", ("s1",)))),
    Seed("bias_gelu", (Step("p1", "matmul", ("x", "m")), Step("s1", "add", ("p1", "b")), Step("y", "gelu", ("s1",)))),
    Seed("residual_layer_norm", (Step("s1", "add", ("x", "r")), Step("y", "norm", ("s1",)))),
    Seed(
        "bias_dropout_residual_layer_norm",
        (
            Step("s1", "add", ("x", "b")),
            Step("d1", "dropout", ("s1",)),
            Step("t1", "add", ("d1", "r")),
            Step("y", "norm", ("t1",)),
        ),
    ),
    Seed(
        "bias_dropout_residual_layer_norm",
        (Step("d1", "dropout_of_linear", ("x",)), Step("t1", "add", ("d1", "r")), Step("y", "norm", ("t1",))),
    ),
    Seed(
        "bias_dropout_residual_layer_norm",
        (Step("s1", "add", ("x", "b")), Step("t1", "add", ("s1", "r")), Step("y", "norm", ("t1",))),
    ),
    Seed("add_scaled", (Step("p1", "mul", ("x", "r")), Step("y", "add", ("p1", "r")))),
    Seed("add_scaled", (Step("q1", "div", ("x", "r")), Step("z1", "scale", ("q1",)), Step("y", "add", ("z1", "x")))),
    Seed("matmul_scale", (Step("p1", "outer", ("x", "r")), Step("y", "divide", ("p1",)))),
)

_SPELLINGS: dict[str, tuple[str, ...]] = {
    "add": (
        "{0} + {1}",
        "{1} + {0}",
        "torch.add({0}, {1})",
        "torch.add(input={1}, other={0})",
        "torch.add({1}, {0}, alpha=1)",
        "torch.add({0}, other={1}, alpha=1.0)",
        "({0}).add({1})",
        "({1}).add(other={0})",
    ),
    "mul": ("{0} * {1}", "{1} * {0}", "torch.mul({0}, {1})", "({0}).multiply({1})", "torch.multiply({1}, other={0})"),
    "div": ("{0} / {1}", "torch.div({0}, {1})", "({0}).div({1})", "torch.true_divide({0}, {1})"),
    "scale": ("{0} * 0.5", "0.5 * ({0})", "torch.mul({0}, 0.5)", "({0}).mul(0.5)"),
    "divide": ("({0}) / 8.0", "torch.div({0}, 8.0)", "({0}).div(8.0)", "({0}) * 0.125", "0.125 * ({0})"),
    "matmul": ("{0} @ {1}", "torch.matmul({0}, {1})", "({0}).matmul({1})"),
    "outer": ("{0} @ ({1}).transpose(-1, -2)", "torch.matmul({0}, torch.transpose({1}, -2, -1))"),
    "gelu": (
        "F.gelu({0})",
        "F.gelu(input={0})",
        'F.gelu({0}, approximate="none")',
        'F.gelu({0}, approximate="tanh")',
        "self.gelu({0})",
        "self.gelu_tanh({0})",
    ),
    "norm": (
        "self.norm({0})",
        "F.layer_norm({0}, self.shape, self.norm.weight, self.norm.bias, 1e-3)",
        "F.layer_norm({0}, normalized_shape=self.shape, bias=self.norm.bias, weight=self.norm.weight)",
        "torch.layer_norm({0}, self.shape, self.norm.weight, self.norm.bias)",
    ),
    "dropout": (
        "self.dropout({0})",
        "F.dropout({0}, 0.3, self.training)",
        "F.dropout({0}, p=0.3, training=self.training)",
        "torch.dropout({0}, 0.3, self.training)",
    ),
    "dropout_of_linear": (
        "self.dropout(self.linear({0}))",
        "self.dropout(F.linear({0}, self.linear.weight, self.linear.bias))",
        "F.dropout(self.linear(input={0}), 0.3, training=self.training)",
    ),
}
_UNRELATED = (
    "other = r * 3",
    "other = torch.relu(x) - 1",
    "other = (r * 2).add_(1)",
    "other = x.sum()",
    "fresh = torch.zeros_like(r); fresh.add_(1)",
    "x.shape",
)
_BEFORE = ("x = torch.tanh(x)", "r = r * 2", "x = x * 1.5", "b = b + 1", "")
_AFTER = ("y = y * 2", "y = torch.sigmoid(y)", "y = y - 1", "")


class Surroundings(nn.Module):
    """The modules that generated programs use; `forward` is theirs."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.shape = (columns,)
        self.two_dimensions = (rows, columns)
        self.gelu, self.gelu_tanh, self.dropout = nn.GELU(), nn.GELU("tanh"), nn.Dropout(0.3)
        self.norm, self.linear = nn.LayerNorm(columns, eps=1e-2), nn.Linear(columns, columns)


def generate(number: int) -> Program:
    """Return program `number`, always the same: two in three change the meaning of their seed."""
    draw = random.Random(number)
    seed = draw.choice(SEEDS)
    lines = [spell(step, draw) for step in seed.steps]
    edit = draw.choice(sorted(EDITS)) if number % 3 else ""
    if edit:
        lines = EDITS[edit](lines, seed.steps, draw)
    lines = [draw.choice(_BEFORE), *_interrupted(_inlined(lines, draw, bool(edit)), draw), draw.choice(_AFTER)]
    if not any(line.startswith("return") for line in lines):
        lines.append("return y")
    source = "def forward(self, x, b, r, m):\n" + "".join(f"    {line}\n" for line in lines if line)
    inputs = _inputs(draw)
    mode = draw.choice(("eval", "train"))
    module = _module(source, inputs[0].shape[-2:], number).train(mode == "train")
    return Program(seed, module, inputs, source, edit, mode)


def spell(step: Step, draw: random.Random) -> str:
    """Return one line for a step, in one of its spellings."""
    return f"{step.target} = {draw.choice(_SPELLINGS[step.operator]).format(*step.operands)}"


def _inlined(lines: list[str], draw: random.Random, edited: bool) -> list[str]:
    """Write some steps into the place where their result is used; edited programs stay line by line."""
    if edited:
        return lines
    kept: list[str] = []
    for line in lines:
        target = kept[-1].split(" = ")[0] if kept else ""
        if kept and draw.random() < 0.4 and target not in NAMES:
            value = kept.pop().split(" = ", 1)[1]
            name, expression = line.split(" = ", 1)
            line = f"{name} = " + re.sub(rf"\b{target}\b", f"({value})", expression)
        kept.append(line)
    return kept


def _interrupted(lines: list[str], draw: random.Random) -> list[str]:
    """Put unrelated work between lines."""
    found: list[str] = []
    for line in lines:
        if draw.random() < 0.3:
            found.append(draw.choice(_UNRELATED))
        found.append(line)
    return found


def _inputs(draw: random.Random) -> tuple[Tensor, ...]:
    """Return rows, bias, residual and matrix: more rows than columns, so that scaling a factor pays."""
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    columns = draw.choice((2, 3, 5))
    shape = (*draw.choice(((), (1,), (2,))), draw.choice((7, 9, 16)), columns)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64)

    residual = normal(*shape)
    return normal(*shape), normal(columns), residual + residual.sign(), normal(columns, columns)


def _module(source: str, shape: torch.Size, number: int) -> nn.Module:
    scope: dict[str, Callable[..., object]] = {}
    exec(compile(source, f"<program {number}>", "exec"), {"torch": torch, "F": F}, scope)
    torch.manual_seed(number)
    module: nn.Module = type(f"Generated{number}", (Surroundings,), scope)(*shape).double()
    return module


Edit = Callable[[list[str], tuple[Step, ...], random.Random], list[str]]


def _after_first(statement: str) -> Edit:
    """Put a statement after the first step."""
    return lambda lines, steps, draw: [lines[0], statement, *lines[1:]]


def _at_the_end(statement: str) -> Edit:
    return lambda lines, steps, draw: [*lines, statement]


def _respelt(operator: str, *spellings: str) -> Edit:
    """Spell the first step with an operator differently; programs without it are left as they are."""

    def edit(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
        for number, step in enumerate(steps):
            if step.operator == operator:
                new = f"{step.target} = {draw.choice(spellings).format(*step.operands)}"
                return [*lines[:number], new, *lines[number + 1 :]]
        return lines

    return edit


def _both_returned(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    return [*lines, f"return y, {draw.choice(steps).target}"]


def _read_twice(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    return [*lines, f"y = y.sum() + {draw.choice(steps).target}"]


def _computed_twice(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    between = draw.choice(("", "x = x * 2", "x.mul_(2)", "r[0].add_(1)"))
    return [*lines, "first = y", between, *lines, "y = y * first"]


def _result_changed(lines: list[str], steps: tuple[Step, ...], draw: random.Random) -> list[str]:
    number = draw.randrange(len(lines))
    target = steps[number].target
    return [*lines[: number + 1], draw.choice((f"{target}.mul_(2)", f"{target}[0].add_(1)")), *lines[number + 1 :]]


EDITS: dict[str, Edit] = {
    "factor in the sum": _respelt("add", "torch.add({0}, {1}, alpha=2)", "({0}).add({1}, alpha=-1)"),
    "difference": _respelt("add", "{0} - {1}", "torch.sub({0}, {1})"),
    "sum in place": _respelt("add", "({0}).add_({1})", "torch.add({0}, {1}, out=torch.empty_like(r))"),
    "sum with a number": _respelt("add", "{0} + 1.0", "2 + ({0})"),
    "sum with one row": _respelt("add", "{0} + r[..., :1, :]", "{0} + r[..., :1]", "{0} + b.sum()"),
    "sum in another type": _respelt("add", "({0}).float() + ({1}).float()", "({0} + ({1}).float())"),
    "transposed sum": _respelt("add", "({0} + r.transpose(-1, -2).contiguous().transpose(-1, -2))"),
    "norm over two dimensions": _respelt("norm", "F.layer_norm({0}, self.two_dimensions)"),
    "norm without affine": _respelt("norm", "F.layer_norm({0}, self.shape)", "F.layer_norm({0}, self.shape, b)"),
    "norm with other weights": _respelt("norm", "F.layer_norm({0}, self.shape, b, self.norm.weight, 0.5)"),
    "relu instead": _respelt("gelu", "F.relu({0})", "F.silu({0})", "F.gelu({0}) * ({0})"),
    "dropped always": _respelt("dropout", "F.dropout({0}, 0.3, True)", "F.dropout({0})"),
    "dropped never": _respelt("dropout", "F.dropout({0}, 0.3, False)", "F.dropout({0}, 0.0)", "F.dropout({0}, 0)"),
    "dropped all": _respelt("dropout", "F.dropout({0}, 1.0, True)"),
    "dropped in place": _respelt("dropout", "F.dropout({0}, 0.3, self.training, True)"),
    "dropped residual": _respelt("dropout", "F.dropout({0} + r, 0.3, self.training)"),
    "rounded quotient": _respelt("div", 'torch.div({0}, {1}, rounding_mode="floor")', "{1} / {0}"),
    "rounded scale": _respelt("divide", 'torch.div({0}, 0.5, rounding_mode="trunc")', "({0}) / b.sum()", "({0}) * 0"),
    "other scale": _respelt("scale", "({0}) * b", "({0}) * True", "({0}) * -0.0"),
    "operand changes": _after_first("x.mul_(2)"),
    "residual changes": _after_first("r.add_(1)"),
    "a view of an operand changes": _after_first("x.view(-1)[0:2].zero_()"),
    "the bias changes": _after_first("b.sub_(1)"),
    "an operand changes afterwards": _at_the_end("x.mul_(2)"),
    "noise between": _after_first("noise = torch.rand_like(r); r = r + noise"),
    "another dropout between": _after_first("r = F.dropout(r, 0.3, True)"),
    "an intermediate value is returned": _both_returned,
    "an intermediate value is read twice": _read_twice,
    "computed twice": _computed_twice,
    "an intermediate value changes": _result_changed,
}
