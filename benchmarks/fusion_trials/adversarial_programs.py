"""Write small programs that are hard to capture and to fuse, to be run by `fuse` and by other compilers.

A program is a text such as `x b: h = x + b; x.mul_(2); return F.gelu(h)`: the names of its inputs, and its body, which
runs as `forward` of `Parts`. The name of an input says what it is, see `_input`. Options stand before it in braces:
`train`, and `x=y` if input y is input x itself, in the way that follows. A part is a table of programs, or a product
of two tables.
"""

import itertools
import math  # the programs call it
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: F401  # the programs call it
from torch import fx, nn
from torch.nn.utils import parametrizations

from course_lib.isolation import seed_everything

Tensor = torch.Tensor
ROWS, SIZE = 4, 8
NOTED: list[int] = []  # what helpers of the programs note


@torch.library.custom_op("adversarial::cache", mutates_args={"cache"})
def _cache(k: Tensor, cache: Tensor) -> None:
    cache.copy_(k)


@torch.library.custom_op("adversarial::noise", mutates_args=())
def _noise(x: Tensor) -> Tensor:
    return x * torch.rand(())


_noise.register_fake(torch.empty_like)


@fx.wrap
def doubled(x: Tensor) -> None:
    """Write an argument."""
    x.mul_(2)


@fx.wrap
def noted(x: Tensor) -> Tensor:
    """Change a list outside of the program."""
    NOTED.append(1)
    return x


class Cube(torch.autograd.Function):
    """Give a gradient that is not that of the result."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        """Return the cube."""
        return x**3

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Return twice the gradient of the result."""
        return grads[0] * 2


class AlwaysDrops(nn.Dropout):
    """Ignore the mode, as a subclass may."""

    def forward(self, x: Tensor) -> Tensor:
        """Scale, in training and in evaluation."""
        return x * (1 - self.p)


class Parts(nn.Module):
    """Hold the modules and buffers that the programs use; `forward` is one of the programs."""

    def __init__(self) -> None:
        super().__init__()
        self.l, self.q, self.k, self.v = (nn.Linear(SIZE, SIZE) for _ in range(4))
        self.frozen, self.tied = nn.Linear(SIZE, SIZE).requires_grad_(False), nn.Linear(SIZE, SIZE)
        self.tied.weight = self.l.weight
        self.norm, self.drop, self.mine = nn.LayerNorm(SIZE), nn.Dropout(0.3), AlwaysDrops(0.5)
        self.bn, self.table = nn.BatchNorm1d(SIZE), nn.Embedding(ROWS, SIZE, max_norm=0.5)
        self.conv, self.bn2 = nn.Conv1d(ROWS, ROWS, 3), nn.BatchNorm1d(ROWS)
        self.elu, self.leaky, self.relu = nn.ELU(inplace=True), nn.LeakyReLU(0.1, inplace=True), nn.ReLU(inplace=True)
        self.weighted, self.spectral = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        parametrizations.weight_norm(self.weighted)
        parametrizations.spectral_norm(self.spectral)
        self.hooked = nn.Linear(SIZE, SIZE)
        self.hooked.register_forward_hook(lambda module, given, result: result * 100)
        self.register_buffer("mean", torch.zeros(SIZE))
        self.register_buffer("spread", torch.ones(SIZE))
        self.register_buffer("store", torch.zeros(ROWS, SIZE))
        self.register_buffer("row", self.get_buffer("store")[0])  # a view of the same memory
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("hidden", torch.ones(SIZE), persistent=False)
        self.calls = 0


# Each computation with the place where something else happens between its operators.
SEEDS = {
    "bias_gelu": "h = x + b; {}; o = F.gelu(h)",
    "formula": "h = x * 0.5; {}; o = h * (1 + torch.erf(x / math.sqrt(2)))",
    "common": "g = x * y; h = x * b; {}; o = g - x * y + h",
    "residual_norm": "h = x + y; {}; o = self.norm(h)",
    "linear": "h = self.l(x); {}; o = h - self.l(x)",
}
WRITES = (
    "x.mul_(2)", "h.mul_(2)", "x[0].add_(1)", "h.view(-1)[::2].zero_()", "x[:, 1:3] = 5.0", "y.copy_(x)",
    "torch.mul(y, 2, out=x)", "torch.ops.adversarial.cache(y * 1, x)", "doubled(x)", "self.leaky(h)",
    "F.hardtanh(h, inplace=True)", "x.t().mul_(0.5)", "torch._foreach_mul_([h, x], 0.5)", "b.add_(1)",
)  # fmt: skip
DRAWS = (
    "torch.rand_like(x)", "torch.randn_like(x)", "F.dropout(x, 0.5, True)", "x.bernoulli(0.5)",
    "torch.poisson(x.abs())", "torch.binomial(c9, p5)", "torch._standard_gamma(x.abs() + 1)",
    "torch.empty_like(x).uniform_()", "F.rrelu(x, training=True)", "torch.ops.adversarial.noise(x)",
)  # fmt: skip
DRAWN = {
    "twice": "o = {0} - {0}",
    "unread": "{0}; o = x * torch.rand_like(x)",
    "between": "h = x + b; n = {0}; o = F.gelu(h) + n",
}
FORMULAS = (
    "F.gelu({0} + b)", "0.5 * {0} * (1 + torch.erf({0} / math.sqrt(2)))", "{0} * torch.sigmoid({0})",
    "0.5 * {0} * (1 + torch.tanh(math.sqrt(2 / math.pi) * ({0} + 0.044715 * {0} ** 3)))",
    "torch.exp({0}) / torch.exp({0}).sum(-1, keepdim=True)", "F.layer_norm({0} + {0}, (8,))",
    "({0} - {0}.mean(-1, keepdim=True)) / torch.sqrt({0}.var(-1, keepdim=True, unbiased=False) + 1e-5)",
    "{0} + {0} * b * 0.5", "{0} * 3 - {0} * 3", "{0} + {0} / b * 1000",
)  # fmt: skip
OPERANDS = ("big", "small", "odd", "half", "bf", "zero", "double")

STATE = (
    "x: a = x * self.bn.running_mean; y = self.bn(x); return a - x * self.bn.running_mean",
    "x: a = x * self.mean; F.batch_norm(x, self.mean, self.spread, training=True); return a - x * self.mean",
    "x: self.bn(x); return x * self.bn.running_var", "x: return self.bn(x) - self.bn(x)",
    "x: return self.relu(self.bn(x))", "x: h = self.bn(x); self.elu(h); return h * 2",
    "i x: self.table(i); return x @ self.table.weight.t()",
    "i x: a = self.table.weight * 2; e = self.table(i); return e + a - self.table.weight * 2",
    "i x: F.embedding(i, self.frozen.weight, max_norm=0.5); return self.frozen(x)",
    "x: a = self.frozen(x); self.frozen.weight.mul_(2.0); return a - self.frozen(x)",
    "x b: a = x + self.row; self.store.add_(1); return F.gelu(a) + (x + self.row)",
    "x: self.count.add_(1); return x * self.count", "x: self.store.copy_(x.detach()); return x + self.store",
    "x: self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1); return x - self.mean",
    "x: a = x + self.hidden; self.hidden.mul_(2); return F.gelu(a) * self.hidden",
    "x: return self.l(x) + self.tied(x)", "x: return self.weighted(x) - self.weighted(x) * 2",
    "x: return self.spectral(x)", "x: return self.spectral(x) + self.spectral(x)", "x: return self.hooked(x) + x",
    "z: return self.relu(self.bn2(self.conv(z)))", "z: c = self.conv(z); return self.bn2(c) + c",
    "z: return self.bn2(self.conv(z)) - self.bn2(self.conv(z))",
    "z: F.instance_norm(z, self.bn2.running_mean, self.bn2.running_var); return self.bn2(self.conv(z))",
    "x: self.calls += 1; return x * self.calls", "x: self.seen = x * 2; return self.seen + 1",
)  # fmt: skip
ALIASES = (
    "{x=y} x y b: h = x + b; y.mul_(2); return F.gelu(h)", "{p=w.t()} p w b: h = p + b; w.mul_(2); return F.gelu(h)",
    "{b=x[0]} x b: h = x + b; b.mul_(2); return F.gelu(h)", "{x=y} x y: g = x * 2; y.add_(1); return g - x * 2",
    "{y=x.view(-1)} x y: g = x * 2; y.zero_(); return g - x * 2", "x: y = x.view(-1); return y, y.mul(2)",
    "x: y = x[1:]; y.add_(1); return x * 2, y", "x: return x.expand(4, 8), x", "x b: h = x + b; return h, h.t()",
    "x: y = x.reshape(-1); z = x.reshape(-1); y.add_(1); return z * 2", "x: y = x.contiguous(); y.add_(1); return x",
    "x: y = x.t().contiguous(); y.add_(1); return x + y.t()", "x: y = x.detach(); y.mul_(2); return x * 2",
    "x: y = x.to(torch.float32); y.mul_(2); return x + 1", "x: a, b = x.chunk(2); a.add_(b); return x * 3",
    "x: a = x.unbind(0); a[0].mul_(2); return x + a[1]", "x: return (x * 2).as_strided((4, 4), (8, 2))",
    "x: return self.q(x).as_strided((8, 4), (4, 1)) * 2 + torch.relu(self.k(x)).reshape(8, 4)",
    "{y=x} x y: return x.add_(y)", "x: x.transpose_(0, 1); return x * 2", "x: y = x.clone(); y.resize_(2, 8); return y",
    "x: y = F.dropout(x, 0.5, False); y.add_(1); return x", "x: y = nn.Identity()(x); y.add_(1); return x * 2",
)  # fmt: skip
CAPTURES = (
    "x b: n = torch.no_grad(); n.__enter__(); y = F.gelu(x + b); n.__exit__(None, None, None); return y * x",
    "x b: torch.set_grad_enabled(False); y = F.gelu(x + b); torch.set_grad_enabled(True); return y * x",
    "x: with torch.autocast('cpu'): y = self.l(x)\n    return y", "x: x += 1; return F.gelu(x + self.mean)",
    "x: return F.gelu(x) if self.training else x", "x: return x * 2 if x.sum() > 0 else x * -2",
    "{train} x: return F.gelu(x) if self.training else x", "x: return self.mine(x)", "{train} x: return self.mine(x)",
    "x: return x * torch.rand(8)", "{train} x: return F.dropout(x, 0.5, self.training) * 2",
    "x: h = torch.zeros(4, 8); h.add_(x); return h", "x: h = torch.ones(8); h[0] = 5; return x * h",
    "x: return x * (3 if isinstance(x, torch.Tensor) else 5)", "x: print('seen'); return x * 2",
    "x y: y.data = x.data * 2; return y * 3", "{y=None} x y: return x * 2 if y is None else x * 100",
    "x: return Cube.apply(x)", "x: return noted(x) * 2", "x: noted(x); return x * 2", "x: NOTED.append(2); return x",
    "x: x.requires_grad_(False); return x * 2", "x: return torch.stack([x[i] * i for i in range(4)])",
    "x: return x * float(torch.rand(()))", "x: return torch.arange(8) * x + torch.arange(8) * (x + 1)",
    "x: with torch.no_grad(): y = F.layer_norm(x + x, (8,))\n    return y + x", "x: y = x.detach(); return y * x",
    "x: return torch.utils.checkpoint.checkpoint(self.l, x, use_reentrant=False)",
    "x: return x[x > 0]", "x: return torch.cond(x.sum() > 0, lambda t: t * 2, lambda t: t * 3, (x,))",
    "x: h = x * 2; h.register_hook(lambda g: g * 7); return h + 1", "xs: return xs[0].add_(1) * 2 + xs[1]",
)  # fmt: skip
SPELLINGS = (
    "x: return torch.add(1, x, alpha=2)", "x b: return F.gelu(torch.add(x, b, alpha=2))", "x: return F.softmax(x)",
    "x: return nn.Softmax(-1)(x)", "x: return x.sum(dim=None, keepdim=True)", "x: return torch.rsub(x, 1, alpha=2) * x",
    "q4 k4 v4: return torch.softmax(q4 @ k4.mT / 3.0, -1) @ v4", "q4 k4 v4: return F.softmax(q4 @ k4.mT, 1) @ v4",
    "q4 k4 v4: return torch.softmax(q4 @ k4.mT * -0.3, -1) @ v4", "x: return torch.clamp(x, 0.5).round() * x",
    "x y: return x.copysign(y) * x", "zero y: return torch.atan2(zero, y) + zero * y", "x: return x % 2 - x // 2",
    "x: c = torch.tensor(1.0); c.copy_(x.mean()); return 0.5 * x * (c + torch.erf(x / math.sqrt(2)))",
    "x: return F.layer_norm(x + x, (4, 8)) + F.layer_norm(x, (8,))", "x: return x.std() / x.var(0) + x.norm()",
    "x y: return F.layer_norm(x * 1.0 + y, (8,), self.norm.weight)", "x: return self.norm(x + self.norm(x))",
    "x y: return torch.addcmul(x, x, y, value=0.5) - (x + x * y * 0.5)", "x: return x.double() * 2 + x",
    "half b: return F.gelu(half + b)", "bf half: return bf + half", "x: return (x * 1e-30) * 1e-30 * 1e38 * x",
    "i x: return i / 3 + x[:, :4]", "i: return (i * 2147483648) * 2147483648 // 3", "i: return i / 0 + i % 3",
    "x: return x.sort(stable=True).values.cumsum(0)", "x: return x.index_put_((torch.tensor([0, 0]),), x[1])",
    "x y: return torch.maximum(x, x).amax(0) + torch.minimum(x, x) * y", "x: return x.abs().pow(0.5) + x.pow(2).sqrt()",
)  # fmt: skip


@dataclass(frozen=True)
class AdversarialProgram:
    """Hold a program, with a function that makes its inputs from a seed."""

    part: str
    source: str
    module: nn.Module
    inputs: Callable[[int], tuple[Any, ...]]


def adversarial_programs() -> Iterator[AdversarialProgram]:
    """Yield all programs."""
    for part, source in _sources():
        yield _program(part, source)


def _sources() -> Iterator[tuple[str, str]]:
    for (name, seed), write in itertools.product(SEEDS.items(), WRITES):
        yield f"write in {name}", f"x y b: y = y * 1; {seed.format(write)}; return o, x"
    for (name, form), draw in itertools.product(DRAWN.items(), DRAWS):
        yield f"draw {name}", f"x b c9 p5: {form.format(draw)}; return o"
    for operand, formula in itertools.product(OPERANDS, FORMULAS):
        yield f"range {operand}", f"{operand} {operand}8: b = {operand}8; return {formula.format(operand)}"
    tables = {"state": STATE, "alias": ALIASES, "capture": CAPTURES, "spelling": SPELLINGS}
    for part, table in tables.items():
        for source in table:
            yield part, source
            if part == "state":
                yield "state in training", "{train} " + source


def _program(part: str, source: str) -> AdversarialProgram:
    options, given = source[1:].split("} ", 1) if source.startswith("{") else ("", source)
    names, body = given.split(": ", 1)
    text = f"def forward(self, {', '.join(names.split())}):\n    {body}\n"
    made: dict[str, Any] = {}
    exec(compile(text, f"<{part}>", "exec"), globals(), made)  # of the tables above
    seed_everything(0)
    module = type("Program", (Parts,), {"forward": made["forward"]})().train(options == "train")
    changes = dict(option.split("=") for option in options.split() if "=" in option)

    def inputs(seed: int) -> tuple[Any, ...]:
        generator = torch.Generator().manual_seed(seed)
        found = {name: _input(name, generator) for name in names.split()}
        for name, value in changes.items():
            found[name] = eval(value, {}, found)  # of the tables above
        return tuple(found.values())

    return AdversarialProgram(part, source, module, inputs)


def _input(name: str, generator: torch.Generator) -> Any:
    """Return the input of a name: `x` and `y` are matrices, `b` is a row, `w` is square, `i` are integers."""
    if name == "xs":
        return [_input("x", generator), _input("y", generator)]
    if name == "i":
        return torch.arange(ROWS)
    if name in ("c9", "p5"):
        return torch.full((ROWS, SIZE), {"c9": 9.0, "p5": 0.5}[name])
    kind = name.removesuffix("8")
    shapes = {"b": (SIZE,), "w": (SIZE, SIZE), "p": (SIZE, SIZE), "z": (2, ROWS, SIZE)}
    shape = (2, 2, ROWS, SIZE) if name.endswith("4") else (SIZE,) if name.endswith("8") else (ROWS, SIZE)
    drawn = torch.randn(shapes.get(name, shape), generator=generator)
    if kind == "odd":
        drawn.view(-1)[:6] = torch.tensor([math.inf, -math.inf, math.nan, 0.0, -0.0, 100.0])
    scales = {"big": 1e30, "small": 1e-38, "zero": 0.0, "half": 100.0}
    dtypes = {"half": torch.float16, "bf": torch.bfloat16, "double": torch.float64}
    return (drawn * scales.get(kind, 1.0)).to(dtypes.get(kind, torch.float32))
