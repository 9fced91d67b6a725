"""Generate formulas of the library's operators, in random algebraic order and spelling.

Two thirds keep their meaning, and the passes must find the operator. The others are edited: a literal changed a little,
a write in between, a second user. The passes may fuse these or not, if the results of the program stay the same.
"""

import math
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.isolation import seed_everything

Tensor = torch.Tensor
Value = str | float  # an expression of a tensor, or a number
WIDTH = 6
SLOPE, CUBE = math.sqrt(2 / math.pi), 0.044715
_PRODUCTS = (
    "{0} * {1}",
    "torch.mul({0}, {1})",
    "({0}).mul({1})",
    "torch.multiply({0}, other={1})",
    "({0}).multiply({1})",
)
_SUMS = ("{0} + {1}", "torch.add({0}, {1})", "({0}).add({1})", "torch.add({0}, other={1}, alpha=1)", "{0} - (-({1}))")
_SCALES = ("{0} * {1}", "{1} * {0}", "torch.mul({0}, {1})", "({0}).mul({1})", "{0} / {2}", "torch.div({0}, {2})")
_SHIFTS = ("{0} + {1}", "{1} + {0}", "torch.add({0}, {1})", "({0}).add(other={1})", "{0} - {2}", "({0}).sub({2})")
_BEFORE = ("h = x", "h = x + b", "h = x * 1.5", "h = self.linear(x)", "h = torch.tanh(x)")
_BEFORE_IN_PLACE = ("h = x * 1.5; h.add_(b)", "h = F.relu(x + b, inplace=True)", "h = (x + r).mul_(0.5)")
_AFTER = ("return y", "return y + r", "return F.layer_norm(y + r, (6,))", "return torch.sigmoid(y)")
_UNRELATED = ("other = r * 3", "(r * 2).add_(1)", "r.sum()")


@dataclass(frozen=True)
class FormulaProgram:
    """Hold a generated program and its inputs."""

    formula: str
    module: nn.Module
    inputs: tuple[Tensor, ...]
    source: str
    edit: str  # what changed the meaning, or "" if nothing did
    in_place: bool  # whether it writes in place, without effect outside

    @property
    def must_fuse(self) -> bool:
        """Tell whether the passes have to find the operator."""
        return not self.edit


class Surroundings(nn.Module):
    """Hold the modules that generated programs use; `forward` is generated."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(WIDTH, WIDTH)
        self.gamma, self.beta = nn.Parameter(torch.rand(WIDTH) + 0.5), nn.Parameter(torch.randn(WIDTH))


class Writer:
    """Write expressions of the value `h` in random order and spelling."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        self.lines: list[str] = []

    def named(self, expression: str) -> str:
        """Give an expression a name on a line of its own."""
        name = f"t{len(self.lines)}"
        self.lines.append(f"{name} = {expression}")
        return name

    def perhaps_named(self, expression: str) -> str:
        """Give some expressions a name, and put the others into parentheses."""
        return self.named(expression) if self.draw.random() < 0.35 else f"({expression})"

    def product(self, *factors: Value) -> Value:
        """Multiply, in any order and association."""
        return self._combined(list(factors), _PRODUCTS, _SCALES, lambda a, b: a * b, lambda a: 1 / a)

    def sum(self, *terms: Value) -> Value:
        """Add, in any order and association."""
        return self._combined(list(terms), _SUMS, _SHIFTS, lambda a, b: a + b, lambda a: -a)

    def any_of(self, *spellings: str) -> str:
        """Return one of the spellings."""
        return self.draw.choice(spellings)

    def _combined(
        self,
        values: list[Value],
        of_tensors: tuple[str, ...],
        with_number: tuple[str, ...],
        combine: Callable[[float, float], float],
        opposite: Callable[[float], float],
    ) -> Value:
        while len(values) > 1:
            self.draw.shuffle(values)
            a, b = values.pop(), values.pop()
            if isinstance(a, float) and isinstance(b, float):
                values.append(combine(a, b))
            elif isinstance(a, str) and isinstance(b, str):
                values.append(self.perhaps_named(self.draw.choice(of_tensors).format(a, b)))
            else:
                tensor, number = (a, b) if isinstance(a, str) else (b, a)
                assert isinstance(number, float)
                shown = self.draw.choice(with_number).format(tensor, repr(number), repr(opposite(number)))
                values.append(self.perhaps_named(shown))
        return values[0]


def _outside(w: Writer, f: str) -> Value:
    """Return h · (1 + f) / 2."""
    form = w.draw.randrange(4)
    if form == 0:
        return w.product("h", 0.5, w.sum(1.0, f))
    if form == 1:
        return w.product("h", w.sum(0.5, w.product(0.5, f)))
    if form == 2:
        return w.sum(w.product(0.5, "h"), w.product(0.5, "h", f))
    return w.product(w.sum("h", w.product("h", f)), 0.5)


def _gelu(w: Writer) -> Value:
    u = w.product("h", math.sqrt(0.5))
    return _outside(w, w.perhaps_named(w.any_of("torch.erf({0})", "({0}).erf()", "torch.special.erf({0})").format(u)))


def _gelu_tanh(w: Writer) -> Value:
    square = w.any_of("h * h", "h ** 2", "torch.square(h)", "h.pow(2)", "torch.pow(h, 2.0)")
    form = w.draw.randrange(3)
    cube: Value = w.any_of("(h ** 3)", "torch.pow(h, 3)", "h.pow(exponent=3.0)")
    if form != 1 and w.draw.random() < 0.4:
        cube = w.product("h", "h", "h")
    if form == 0:
        u = w.product(SLOPE, w.sum("h", w.product(CUBE, cube)))
    elif form == 1:
        u = w.product(SLOPE, "h", w.sum(1.0, w.product(CUBE, f"({square})")))
    else:
        u = w.sum(w.product(SLOPE, "h"), w.product(SLOPE * CUBE, cube))
    return _outside(w, w.perhaps_named(w.any_of("torch.tanh({0})", "({0}).tanh()", "F.tanh({0})").format(u)))


def _silu(w: Writer) -> Value:
    return w.product("h", w.perhaps_named(w.any_of("torch.sigmoid(h)", "h.sigmoid()", "F.sigmoid(h)")))


def _softmax(w: Writer) -> Value:
    largest = w.any_of(
        "h.max(-1, keepdim=True)[0]",
        "torch.max(h, dim=-1, keepdim=True).values",
        "h.amax(-1, True)",
        "torch.amax(h, dim=(-1,), keepdim=True).detach()",
        "h.max(-1)[0].unsqueeze(-1)",
    )
    m = w.perhaps_named(largest)
    shifted = w.any_of("h - {0}", "torch.sub(h, {0})", "h.sub(other={0})", "-{0} + h", "torch.add(h, {0}, alpha=-1)")
    e = w.named(w.any_of("torch.exp({0})", "({0}).exp()").format(shifted.format(m)))
    total = w.any_of("{0}.sum(-1, keepdim=True)", "torch.sum({0}, dim=-1, keepdim=True)", "{0}.sum(-1).unsqueeze(-1)")
    s = w.perhaps_named(total.format(e))
    return w.any_of(
        "{0} / {1}", "torch.div({0}, {1})", "{0} * {1}.reciprocal()", "(1 / {1}) * {0}", "{0}.mul(1.0 / {1})"
    ).format(e, s)


def _layer_norm(w: Writer) -> Value:
    means = ("h.mean(-1, keepdim=True)", "torch.mean(h, dim=-1, keepdim=True)", "h.mean((-1,)).unsqueeze(-1)")
    m = w.named(w.any_of(*means, "h.sum(-1, keepdim=True) / 6", "torch.sum(h, -1, True).mul(1 / 6)"))
    difference = w.any_of("h - {0}", "torch.sub(h, {0})", "-{0} + h").format(m)
    d = w.named(difference) if w.draw.random() < 0.7 else f"({difference})"
    squares = w.any_of("{0} ** 2", "{0} * {0}", "{0}.pow(2)", "torch.square({0})").format(d)
    variance = w.any_of(
        "h.var(-1, unbiased=False, keepdim=True)",
        "torch.var(h, dim=-1, correction=0, keepdim=True)",
        f"({squares}).mean(-1, keepdim=True)",
        f"torch.mean({squares}, -1, True)",
        f"({squares}).sum(-1, keepdim=True) / 6",
    )
    moved = w.sum(f"({variance})", 1e-5)
    if w.draw.random() < 0.5:
        r = w.any_of("torch.rsqrt({0})", "({0}).rsqrt()", "({0}) ** -0.5", "1 / torch.sqrt({0})").format(moved)
        factors: list[Value] = [d, w.perhaps_named(r)]
    else:
        s = w.any_of("torch.sqrt({0})", "({0}).sqrt()", "({0}) ** 0.5", "torch.pow({0}, 0.5)").format(moved)
        factors = [w.perhaps_named(f"{d} / {w.perhaps_named(s)}")]
    affine = w.draw.randrange(3)
    scaled = w.product(*factors, "self.gamma") if affine else w.product(*factors)
    return w.sum(scaled, "self.beta") if affine == 2 else scaled


FORMULAS: dict[str, Callable[[Writer], Value]] = {
    "gelu": _gelu,
    "gelu_tanh": _gelu_tanh,
    "silu": _silu,
    "softmax": _softmax,
    "layer_norm": _layer_norm,
}


def generate_formula(number: int) -> FormulaProgram:
    """Return program `number`, equal at each call; two in three keep the meaning of their formula."""
    draw = random.Random(number)
    formula = draw.choice(sorted(FORMULAS))
    in_place = draw.random() < 0.3
    writer = Writer(draw)
    result = FORMULAS[formula](writer)
    lines = [*writer.lines, f"y = {result}"]
    edit = draw.choice(sorted(EDITS)) if number % 3 == 0 else ""
    if edit:
        lines = EDITS[edit](lines, draw)
    if draw.random() < 0.3:
        lines.insert(draw.randrange(len(lines)), draw.choice(_UNRELATED))
    lines = [draw.choice(_BEFORE_IN_PLACE if in_place else _BEFORE), *lines, draw.choice(_AFTER)]
    source = "def forward(self, x, b, r):\n" + "".join(f"    {line}\n" for line in lines)
    shape = (*draw.choice(((), (2,))), draw.choice((1, 4, 5)), WIDTH)
    generator = torch.Generator().manual_seed(number)
    sizes = (shape, (WIDTH,), shape)
    inputs = tuple(torch.randn(size, generator=generator, dtype=torch.float64) for size in sizes)
    return FormulaProgram(formula, _module(source, number), inputs, source, edit, in_place)


def _module(source: str, number: int) -> nn.Module:
    scope: dict[str, Callable[..., object]] = {}
    exec(compile(source, f"<formula {number}>", "exec"), {"torch": torch, "F": F}, scope)
    seed_everything(number)
    module: nn.Module = type(f"Formula{number}", (Surroundings,), scope)().double()
    return module


Lines = list[str]
_NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(e-\d+)?")


def _literal_off(lines: Lines, draw: random.Random) -> Lines:
    """Change one literal a little; a formula without literals gets a second user instead."""
    places = [(number, found) for number, line in enumerate(lines) for found in _NUMBER.finditer(line)]
    if not places:
        return _read_twice(lines, draw)
    number, found = draw.choice(places)
    off = repr(float(found.group()) * draw.choice((1.003, 0.98, 1 + 1e-5, -1.0)))
    line = lines[number]
    return [*lines[:number], f"{line[: found.start()]}({off}){line[found.end() :]}", *lines[number + 1 :]]


def _read_twice(lines: Lines, draw: random.Random) -> Lines:
    name = draw.choice(lines).split(" = ")[0]
    return [*lines, f"y = y * 2 + {name}"]


def _changed(statement: str) -> Callable[[Lines, random.Random], Lines]:
    def edit(lines: Lines, draw: random.Random) -> Lines:
        place = draw.randrange(1, len(lines)) if len(lines) > 1 else 0
        return [*lines[:place], statement, *lines[place:]]

    return edit


def _replaced(*pairs: tuple[str, str]) -> Callable[[Lines, random.Random], Lines]:
    def edit(lines: Lines, draw: random.Random) -> Lines:
        places = [(n, *pair) for n, line in enumerate(lines) for pair in pairs if re.search(pair[0], line)]
        if not places:
            return _literal_off(lines, draw)
        number, old, new = draw.choice(places)
        return [*lines[:number], re.sub(old, new, lines[number], count=1), *lines[number + 1 :]]

    return edit


EDITS: dict[str, Callable[[Lines, random.Random], Lines]] = {
    "a literal is off": _literal_off,
    "an intermediate value is read twice": _read_twice,
    "the value changes": _changed("h.mul_(1.5)"),
    "an input changes": _changed("x.add_(1)"),
    "unbiased": _replaced(("unbiased=False", "unbiased=True"), ("correction=0", "correction=1")),
    "another value": _replaced((r"\bh\b", "x"), (r"\bh\b", "(h + 1)")),
    "in place": _replaced(
        (r"(?<!torch)\.mul\(", ".mul_("),
        (r"(?<!torch)\.add\(", ".add_("),
        (r"\.exp\(\)", ".exp_()"),
        (r"\.erf\(\)", ".erf_()"),
    ),
    "another dimension": _replaced((r"keepdim=True", "keepdim=False"), (r"\(-1, keep", "(0, keep")),
    "another function": _replaced(
        (r"torch\.exp\(", "torch.cosh("),
        (r"torch\.tanh\(", "torch.sin("),
        (r"\.erf\(\)", ".sin()"),
        (r"\bsqrt\(", "abs("),
    ),
}
