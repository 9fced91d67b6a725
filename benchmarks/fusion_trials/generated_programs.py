"""Generate programs to try passes on: seeds that must fuse, in random spellings and with edits.

A seed is a short program that a pass fuses. Each step has several spellings, and unrelated work can stand between the
steps. Both keep the meaning, so the pass must still fire. An edit changes the meaning: a factor, a write in between, a
second user. The pass may fuse these or not, if the results of the program stay the same.
"""

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.fusion_trials.program_seeds import EDITS, NAMES, SEEDS, Seed, spell
from course_lib.isolation import seed_everything

Tensor = torch.Tensor


@dataclass(frozen=True)
class Program:
    """Hold a generated program and its inputs."""

    seed: Seed
    module: nn.Module
    inputs: tuple[Tensor, ...]
    source: str
    edit: str  # what changed the meaning, or "" if nothing did
    mode: str = field(default="eval")

    @property
    def must_fuse(self) -> bool:
        """Tell whether the pass has to fire: nothing changed the meaning of the seed."""
        return not self.edit


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
    """Hold the modules that generated programs use; `forward` is generated."""

    def __init__(self, rows: int, columns: int) -> None:
        super().__init__()
        self.shape = (columns,)
        self.two_dimensions = (rows, columns)
        self.gelu, self.gelu_tanh, self.dropout = nn.GELU(), nn.GELU("tanh"), nn.Dropout(0.3)
        self.norm, self.linear = nn.LayerNorm(columns, eps=1e-2), nn.Linear(columns, columns)
        self.q, self.k, self.v, self.other = (nn.Linear(columns, columns) for _ in range(4))
        self.e, self.f = (nn.Linear(columns, columns, bias=False) for _ in range(2))
        self.hooked = nn.Linear(columns, columns)
        self.hooked.register_forward_hook(_doubled)
        self.frozen = nn.Linear(columns, columns).requires_grad_(False)
        self.convolution = nn.Conv2d(1, 2, 3, padding=1)
        self.batch_norm, self.image_norm = nn.BatchNorm1d(columns), nn.BatchNorm2d(2)
        for norm in (self.batch_norm, self.image_norm):
            assert isinstance(norm.running_var, Tensor)
            nn.init.uniform_(norm.running_var, 0.5, 2)
            nn.init.normal_(norm.weight)


def _doubled(module: nn.Module, given: object, result: Tensor) -> Tensor:
    return result * 2


def generate(number: int) -> Program:
    """Return program `number`, equal at each call; two in three change the meaning of their seed."""
    draw = random.Random(number)
    seed = draw.choice(SEEDS)
    lines = [spell(step, draw) for step in seed.steps]
    edit, lines = _edited(lines, seed, draw) if number % 3 else ("", lines)
    lines = [draw.choice(_BEFORE), *_interrupted(_inlined(lines, draw, bool(edit)), draw), draw.choice(_AFTER)]
    if not any(line.startswith("return") for line in lines):
        lines.append("return y")
    source = "def forward(self, x, b, r, m):\n" + "".join(f"    {line}\n" for line in lines if line)
    inputs = _inputs(seed, draw)
    mode = draw.choice(seed.modes)
    module = _module(source, inputs[0].shape[-2:], number).train(mode == "train")
    return Program(seed, module, inputs, source, edit, mode)


def _edited(lines: list[str], seed: Seed, draw: random.Random) -> tuple[str, list[str]]:
    """Return the name of an edit that applies to these lines, and the edited lines."""
    while True:
        edit = draw.choice(sorted(EDITS))
        changed = EDITS[edit](lines, seed.steps, draw)
        if changed != lines:
            return edit, changed


def _inlined(lines: list[str], draw: random.Random, edited: bool) -> list[str]:
    """Inline some steps where their result is used; edited programs keep one step on each line."""
    if edited:
        return lines
    kept: list[str] = []
    for line in lines:
        target = kept[-1].split(" = ")[0] if kept else ""
        name, expression = line.split(" = ", 1)
        used = re.search(rf"\b{target}\b", expression)
        if kept and draw.random() < 0.4 and target not in NAMES and used:
            value = kept.pop().split(" = ", 1)[1]
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


def _inputs(seed: Seed, draw: random.Random) -> tuple[Tensor, ...]:
    """Return rows, bias, residual and matrix."""
    generator = torch.Generator().manual_seed(draw.getrandbits(40))
    columns = draw.choice((4, 3, 5))  # a LayerNorm of two numbers gives 1 and -1, and its gradient is rounding
    shape = (*draw.choice(seed.batches), draw.choice(seed.rows), columns)

    def normal(*size: int) -> Tensor:
        return torch.randn(size, generator=generator, dtype=torch.float64)

    residual = normal(*shape)
    return normal(*shape), normal(columns), residual + residual.sign(), normal(columns, columns)


def _module(source: str, shape: torch.Size, number: int) -> nn.Module:
    scope: dict[str, Callable[..., object]] = {}
    exec(compile(source, f"<program {number}>", "exec"), {"torch": torch, "F": F}, scope)
    seed_everything(number)
    module: nn.Module = type(f"Generated{number}", (Surroundings,), scope)(*shape).double()
    return module
