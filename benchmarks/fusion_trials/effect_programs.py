"""Generate programs in which an effect stands beside a computation that a pass fuses, merges, folds or erases.

A program is a seed of a few lines, an effect, and the places before, between or after the lines where it stands. The
effect writes, draws, or runs code that cannot be observed, and its operands are drawn from the values known there.
Inputs may be views of one storage. An effect may forbid the pass or not; the result has to be that of the program.
"""

import functools
import math  # noqa: F401  # generated programs call it
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: F401  # generated programs call it
from torch import fx, nn

from course_lib.isolation import seed_everything

Tensor = torch.Tensor
SIZE = 4
COUNTS: list[int] = []  # what `counted` notes


@torch.library.custom_op("effects_trial::write_first", mutates_args={"target"})
def _write_first(target: Tensor, source: Tensor) -> None:
    target.copy_(source * 0.5)


@torch.library.custom_op("effects_trial::write_second", mutates_args={"target"})
def _write_second(source: Tensor, target: Tensor) -> None:
    target.copy_(source * 0.5)


@torch.library.custom_op("effects_trial::write_last", mutates_args={"target"})
def _write_last(source: Tensor, factor: float, target: Tensor) -> Tensor:
    target.mul_(factor)
    return source + 1


@torch.library.custom_op("effects_trial::write_both", mutates_args={"first", "second"})
def _write_both(first: Tensor, scale: Tensor, second: Tensor) -> None:
    first.add_(scale)
    second.sub_(scale)


@torch.library.custom_op("effects_trial::draw", mutates_args=())
def _draw(source: Tensor) -> Tensor:
    return source * torch.rand(())


_write_last.register_fake(lambda source, factor, target: torch.empty_like(source))
_draw.register_fake(lambda source: torch.empty_like(source))


@fx.wrap
def scaled_in_place(value: Tensor) -> None:
    """Write an argument."""
    value.mul_(2)


@fx.wrap
def counted(value: Tensor) -> Tensor:
    """Change a list outside of the program, and give the argument itself."""
    COUNTS.append(1)
    return value


@fx.wrap
def drawn(value: Tensor) -> Tensor:
    """Draw random numbers."""
    return value + torch.rand(())


class Surroundings(nn.Module):
    """Hold the modules that generated programs use; `forward` is generated."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.drop = nn.LayerNorm(SIZE), nn.Dropout(0.3)
        self.linear, self.q, self.k = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.frozen = nn.Linear(SIZE, SIZE).requires_grad_(False)
        self.tied = nn.Linear(SIZE, SIZE).requires_grad_(False)
        self.tied.weight = self.frozen.weight
        self.batch_norm, self.table = nn.BatchNorm1d(SIZE), nn.Embedding(SIZE, SIZE, max_norm=0.5)
        self.table.requires_grad_(False)
        self.rrelu, self.elu, self.leaky = nn.RReLU(), nn.ELU(inplace=True), nn.LeakyReLU(0.1, inplace=True)
        self.hardswish, self.relu6 = nn.Hardswish(inplace=True), nn.ReLU6(inplace=True)
        self.signal, self.signal_norm = nn.Conv1d(SIZE, SIZE, 1), nn.BatchNorm1d(SIZE)
        self.register_buffer("mean", torch.zeros(SIZE))
        self.register_buffer("spread", torch.ones(SIZE))
        self.register_buffer("store", torch.zeros(SIZE, SIZE))
        self.register_buffer("row", self.get_buffer("store")[0])  # a view of the same memory


SEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    "bias_gelu": (("h = x + b", "o = F.gelu(h)"), ""),
    "common_subexpressions": (("g = x * y", "h = x * y", "o = g - h * 2"), ""),
    "common_modules": (("g = self.frozen(x)", "h = self.frozen(x)", "o = g - h * 2"), ""),
    "common_random": (("g = torch.rand_like(x)", "h = torch.rand_like(x)", "h = g - h + b", "o = F.gelu(h)"), ""),
    "residual_layer_norm": (("h = x + y", "o = self.norm(h)"), ""),
    "bias_dropout_residual_layer_norm": (("g = x + b", "h = self.drop(g)", "h = h + y", "o = self.norm(h)"), ""),
    "formulas": (("h = x * 0.5", "g = torch.erf(x / math.sqrt(2))", "o = h * (1 + g)"), ""),
    "dead_code": (("h = x * y", "g = h.sum()", "o = x + y"), ""),
    "out_of_place": (("h = x * y", "h.add_(b)", "o = F.gelu(h)"), ""),
    "views": (("g = x.reshape(-1)", "h = x.reshape(-1)", "o = g * 2 - h"), ""),
    "add_scaled": (("h = x * y", "o = x + h * 0.5"), ""),
    "matmul_scale": (("h = x.reshape(-1, 1) @ y.reshape(1, -1)", "o = h / 8.0"), "matmul_scale"),
    "qkv_merge": (("g = self.q(x)", "h = self.k(x)", "o = g * h"), "qkv_merge"),
    "statistics": (("g = x * self.mean", "h = x * self.mean", "o = g - h * 2"), ""),
    "rms_norm": (("h = x.pow(2).mean(-1, keepdim=True)", "g = x * torch.rsqrt(h + 1e-6)", "o = g * b"), ""),
    "aten_linear": (
        (
            "g = torch.ops.aten.t.default(self.frozen.weight)",
            "h = torch.ops.aten.addmm.default(self.frozen.bias, x, g)",
            "h = h + y",
            "o = self.norm(h)",
        ),
        "",
    ),
    "aten_norm": (
        (
            "h = x + y",
            "g = torch.ops.aten.native_layer_norm.default(h, [4], self.norm.weight, self.norm.bias, 1e-5)",
            "o = g[0]",
        ),
        "",
    ),
    "conv_batch_norm": (("h = self.signal(x.repeat(1, 32)[None])", "o = self.signal_norm(h)[0]"), "conv_batch_norm"),
    "stores": (("g = x + self.row", "h = F.gelu(g)", "o = h + x"), ""),
}
"""Each seed with the pass that must be asked for."""
OTHER_SHAPES = ("views", "dead_code", "matmul_scale", "rms_norm", "aten_norm", "conv_batch_norm")  # between the lines

EFFECTS: dict[str, str] = {
    "nothing": "x.shape",
    "method": "{0}.mul_(2)",
    "view": "{0}[0].add_(1)",
    "flat view": "{0}.view(-1).add_({1}.sum())",
    "transposed view": "{0}.t().mul_(0.5)",
    "item": "{0}.__setitem__(0, {1}[0])",
    "strided view": "{0}.as_strided((2,), (1,)).zero_()",
    "keyword": "torch.mul({1}, 2, out={0})",
    "two keywords": "torch.max({1}, 1, out=(v, i))",
    "keyword buffer": "torch.add({1}, 1, out=self.store)",
    "keyword row": "torch.mul({1}[0], 2, out=self.row)",
    "ATen keyword": "torch.ops.aten.sort.values({1}, values={0}, indices=s)",
    "copy": "{0}.copy_({1})",
    "addcmul": "{0}.addcmul_({1}, {1})",
    "foreach": "torch._foreach_mul_([{0}], 0.5)",
    "writes first": "torch.ops.effects_trial.write_first({0}, {1} * 1)",
    "writes second": "torch.ops.effects_trial.write_second({1} * 1, {0})",
    "writes last": "torch.ops.effects_trial.write_last({1} * 1, 0.5, target={0})",
    "writes both": "torch.ops.effects_trial.write_both({0}, {1} * 1, w)",
    "operator draws": "w = w + torch.ops.effects_trial.draw({1})",
    "unread draw": "torch.ops.effects_trial.draw({1})",
    "helper writes": "scaled_in_place({0})",
    "helper counts": "w = w + counted({1})",
    "unread helper": "counted({1})",
    "helper draws": "w = w + drawn({1})",
    "helper keeps": "z = counted({0}); z.mul_(2)",
    "ELU": "self.elu({0})",
    "LeakyReLU": "self.leaky({0})",
    "Hardswish": "self.hardswish({0})",
    "ReLU6": "self.relu6({0})",
    "flag": "F.leaky_relu({0}, 0.1, True)",
    "keyword flag": "F.hardtanh({0}, inplace=True)",
    "BatchNorm": "w = w + self.batch_norm({1})",
    "unread BatchNorm": "self.batch_norm({1})",
    "batch_norm": "w = w + F.batch_norm({1}, self.mean, self.spread, training=True)",
    "unread batch_norm": "F.batch_norm({1}, self.mean, self.spread, training=True)",
    "instance_norm": "F.instance_norm({1}.unsqueeze(0), self.mean, self.spread)",
    "Embedding": "self.table(i); w = w + self.table.weight",
    "embedding": "F.embedding(i, self.frozen.weight, max_norm=0.5)",
    "frozen weight": "self.frozen.weight.mul_(1.5)",
    "tied weight": "self.tied.weight.add_(0.5)",
    "binomial": "w = w + torch.binomial(torch.full_like({1}, 9.0), torch.full_like({1}, 0.5))",
    "unread binomial": "torch.binomial(torch.full_like({1}, 9.0), torch.full_like({1}, 0.5))",
    "gamma": "w = w + torch._standard_gamma({1}.abs() + 1)",
    "poisson": "w = w + torch.poisson({1}.abs())",
    "bernoulli": "torch.bernoulli(torch.full_like({1}, 0.5))",
    "normal": "torch.full_like({1}, 0.5).normal_()",
    "dropout": "w = w + F.dropout({1}, 0.5, True)",
    "Dropout": "self.drop({1})",
    "RReLU": "w = w + self.rrelu({1})",
    "rrelu": "F.rrelu({1}, training=True)",
    "multinomial": "torch.multinomial({1}.abs() + 1, 2)",
    "uniform": "w = w + torch.empty_like({1}).uniform_()",
}
SHARED = ("apart", "the same", "transposed", "a row", "a slice")
MODES = ("eval", "train")


@dataclass(frozen=True)
class EffectProgram:
    """Hold a generated program, with a function that makes its inputs."""

    seed: str
    effect: str
    module: nn.Module
    inputs: Callable[[bool, torch.dtype], tuple[tuple[Tensor, ...], tuple[Tensor, ...]]]
    """Makes fresh inputs, with or without gradients, and returns the leaves that they come from too."""
    source: str
    mode: str

    @property
    def asked(self) -> str:
        """Return the pass that must be asked for by name."""
        return SEEDS[self.seed][1]


def generate_effect(number: int) -> EffectProgram:
    """Return program `number`; the same number gives the same program."""
    draw = random.Random(number)
    seed, effect = draw.choice(list(SEEDS)), draw.choice(list(EFFECTS))
    lines, known = [], ["x", "y"]
    places = sorted(draw.sample(range(len(SEEDS[seed][0]) + 1), draw.choice((1, 1, 2))))
    for place, line in enumerate((*SEEDS[seed][0], "")):
        if place in places:
            target, other = draw.choice(known), draw.choice(known)
            lines.append(EFFECTS[effect].format(target, other))
        lines.append(line)
        name = line.partition(" = ")[0]
        is_square = seed not in OTHER_SHAPES or name == "o"
        known += [name] if " = " in line and is_square and name not in known else []
    source = "\n".join(["def forward(self, x, y, b, w, v, i, s):", *(f"    {line}" for line in lines if line)])
    source += "\n    return o, w\n"
    made: dict[str, Any] = {}
    exec(compile(source, f"<effects {number}>", "exec"), globals(), made)  # of the lines above
    program = type("Program", (Surroundings,), {"forward": made["forward"]})
    seed_everything(number)
    mode = draw.choice(MODES)
    shared = draw.choice(SHARED)
    inputs = functools.partial(_inputs, number, shared)
    return EffectProgram(seed, effect, program().train(mode == "train"), inputs, source, mode)


def _inputs(
    number: int, shared: str, gradients: bool, dtype: torch.dtype = torch.float32
) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Return inputs and leaves, of the same values in every dtype; `shared` says which inputs lie in one storage."""
    generator = torch.Generator().manual_seed(number)
    sizes = ((2 * SIZE, SIZE), (SIZE, SIZE), (SIZE,), (SIZE, SIZE))
    drawn = [torch.randn(size, generator=generator).to(dtype) for size in sizes]
    leaves = tuple(leaf.requires_grad_(gradients) for leaf in drawn)
    both, y, b, w = (leaf.clone() for leaf in leaves)
    x = both[:SIZE] if shared == "a slice" else both[:SIZE].clone()
    y = {"the same": x, "transposed": x.t(), "a slice": both[2 : 2 + SIZE]}.get(shared, y)
    b = x[0] if shared == "a row" else b
    others = torch.zeros(SIZE, dtype=dtype), torch.arange(SIZE) % SIZE, torch.zeros(SIZE, SIZE, dtype=torch.int64)
    return (x, y, b, w, *others), leaves
