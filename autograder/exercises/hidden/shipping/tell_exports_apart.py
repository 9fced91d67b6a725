"""Hidden checks and controls of exercise 14.4."""

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.shipping.tell_exports_apart import TEXT, Twins, tells
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart

ANSWERS = Answers(__name__)
MORE = (
    TEXT
    + """

class Levelled(Program):
    def forward(self, x):
        return nn.functional.layer_norm(x, x.shape[-1:], self.weight, self.bias, 1e-12)


class Unit(Program):
    def forward(self, x):
        return x / x.abs().amax(1, keepdim=True) * self.scale


class Rounded(Program):
    def forward(self, x):
        return torch.round(x) * self.weight


class Buckets(Program):
    def forward(self, x):
        return self.table[torch.div(x, self.width, rounding_mode="floor") + 60]


class Embedded(Program):
    def forward(self, ids):
        return self.table[ids]


class Pooled(Program):
    def forward(self, x, mask):
        kept = mask.unsqueeze(-1)
        return (x * kept).sum(1) / kept.sum(1).clamp(min=1) * self.scale


class Activated(Program):
    def forward(self, x):
        return nn.functional.gelu(x) * self.scale
"""
)
ROWS = ("batch", 8)
SIZES = "int(torch.randint(low, high + 1, ()))"
VALUES = "(low + (high - low) * torch.rand(shape)) * factor"
WHOLE = "randint(max(low, 0), high + 1, shape)"
FIRST = "torch.from_numpy(sessions[0].run(None, fed)[0])"


def small(draw: Draw) -> Twins:
    """Return a layer norm with the epsilon of BERT; the wrong model has that of PyTorch."""
    norm = "y = LayerNormalization<axis=-1, epsilon={}>(x, weight, bias)"
    return Twins(
        "Levelled",
        {"x": (torch.float32, ROWS)},
        ROWS,
        {"weight": draw.normal(8) + 3, "bias": draw.normal(8)},
        {"batch": (1, 6), "x": (-100, 100)},
        norm.format("1.0e-12"),
        norm.format("1.0e-5"),
        "The models differ in epsilon. Try small numbers.",
    )


def smallest(draw: Draw) -> Twins:
    """Return rows divided by their largest number; the wrong model adds an epsilon.

    A row of zeros is NaN in the module and in the right model, so it shows nothing.
    """
    epsilon = draw.choice((0.003, 0.01))
    largest = "a = Abs(x) m = ReduceMax<keepdims=1>(a, at)"
    return Twins(
        "Unit",
        {"x": (torch.float32, ROWS)},
        ROWS,
        {"scale": draw.normal(8).abs() + 2},
        {"batch": (2, 6), "x": (-100, 100)},
        f"{largest} d = Div(x, m) y = Mul(d, scale)",
        f"{largest} e = Constant<value_float={epsilon}>() s = Add(m, e) d = Div(x, s) y = Mul(d, scale)",
        "One model adds an epsilon to the largest number. Try small numbers, and no row of zeros.",
        {"at": [1]},
    )


def halves(draw: Draw) -> Twins:
    """Return a rounding to even; the wrong model rounds halves up, or away from zero."""
    half = "h = Constant<value_float=0.5>() "
    up = f"{half} s = Add(x, h) r = Floor(s)"
    away = f"{half} a = Abs(x) s = Add(a, h) f = Floor(s) g = Sign(x) r = Mul(f, g)"
    return Twins(
        "Rounded",
        {"x": (torch.float32, ROWS)},
        ROWS,
        {"weight": draw.normal(8) + 3},
        {"batch": (1, 6), "x": (-100, 100)},
        "r = Round(x) y = Mul(r, weight)",
        f"{draw.choice((up, away))} y = Mul(r, weight)",
        "The models round halves in two ways. Try halves.",
    )


def negatives(draw: Draw) -> Twins:
    """Return a division of whole numbers that rounds down; the wrong model rounds to zero, as ONNX's Div does."""
    down = "q = Div(x, width) p = Mul(q, width) b = Greater(p, x) c = Cast<to=7>(b) f = Sub(q, c)"
    return Twins(
        "Buckets",
        {"x": (torch.int64, ("batch", "length"))},
        ("batch", "length"),
        {"table": draw.normal(128, scale=5.0), "width": torch.tensor(draw.integer(2, 5))},
        {"batch": (1, 4), "length": (1, 6), "x": (-100, 100)},
        f"{down} at = Add(f, middle) y = Gather(table, at)",
        "f = Div(x, width) at = Add(f, middle) y = Gather(table, at)",
        "The models divide negative numbers in two ways.",
        {"middle": [60]},
    )


def large(draw: Draw) -> Twins:
    """Return rows of a table; the wrong model keeps the numbers of rows in 8 bits."""
    return Twins(
        "Embedded",
        {"ids": (torch.int64, ("batch", "length"))},
        ("batch", "length", 2),
        {"table": draw.normal(draw.integer(170, 250), 2, scale=5.0)},
        {"batch": (1, 4), "length": (1, 6), "ids": (0, 160)},
        "i = Cast<to=6>(ids) at = Cast<to=7>(i) y = Gather(table, at)",
        "i = Cast<to=3>(ids) at = Cast<to=7>(i) y = Gather(table, at)",
        "One model keeps 8 bits of each number. Try large ones.",
    )


def _pooled(draw: Draw, wrong: str) -> Twins:
    masked = "m = Cast<to=1>(mask) k = Unsqueeze(m, last) p = Mul(x, k) s = ReduceSum<keepdims=0>(p, at)"
    count = "o = Constant<value_float=1.0>() n = ReduceSum<keepdims=0>(k, at) c = Max(n, o)"
    body = f"{masked} {{}} d = Div(s, c) y = Mul(d, scale)"
    return Twins(
        "Pooled",
        {"x": (torch.float32, ("batch", "length", 4)), "mask": (torch.bool, ("batch", "length"))},
        ("batch", 4),
        {"scale": draw.normal(4) + 3},
        {"batch": (1, 4), "length": (1, 12), "x": (-10, 10), "mask": (0, 1)},
        body.format(count),
        body.format(wrong),
        "Try masks that keep few tokens.",
        {"at": [1], "last": [2]},
    )


def whole(draw: Draw) -> Twins:
    """Return a masked mean; the wrong model divides by the length, as is right for a mask that keeps all."""
    return _pooled(draw, "g = Shape<start=1, end=2>(x) c = Cast<to=1>(g)")


def few(draw: Draw) -> Twins:
    """Return a masked mean; the wrong model has another least count."""
    least = draw.choice((2.0, 3.0))
    return _pooled(draw, f"f = Constant<value_float={least}>() n = ReduceSum<keepdims=0>(k, at) c = Max(n, f)")


def formula(draw: Draw) -> Twins:
    """Return an exact GELU, enlarged; the wrong model has the approximation by tanh."""
    gelu = 'g = Gelu<approximate="{}">(x) y = Mul(g, scale)'
    return Twins(
        "Activated",
        {"x": (torch.float32, ROWS)},
        ROWS,
        {"scale": draw.normal(8).abs() * 40 + 150},
        {"batch": (1, 6), "x": (-100, 100)},
        gelu.format("none"),
        gelu.format("tanh"),
        "The formulas differ between -4 and -2, and between 2 and 4.",
    )


HIDDEN = HiddenPart(
    checks=(
        Check("numbers of another size", "magnitudes", 0.5, tells(small, formula, smallest, text=MORE, rounds=2)),
        Check("halves", "rounding", 1.5, tells(halves, text=MORE, rounds=4)),
        Check("whole numbers, negative or large", "whole numbers", 1.5, tells(negatives, large, text=MORE, rounds=2)),
        Check("masks that keep few", "masks", 1.5, tells(whole, few, text=MORE, rounds=2)),
    ),
    controls=(
        ANSWERS.reference(10),
        *ANSWERS.styles(10),
        ANSWERS.edited("the greatest sizes", 10, (SIZES, "high")),
        ANSWERS.edited("the least sizes", 7, (SIZES, "low")),
        ANSWERS.edited("the right one", 0, ("return (name, inputs)", "return (('second', 'first')[at], inputs)")),
        ANSWERS.edited("always the first", 0, ("return (name, inputs)", "return ('first', inputs)")),
        ANSWERS.edited("inputs alone", 0, ("return (name, inputs)", "return inputs")),
        ANSWERS.edited("a number for a name", 0, ("return (name, inputs)", "return (at, inputs)")),
        ANSWERS.edited("arrays of NumPy", 0, ("return (name, inputs)", "return (name, tuple(fed.values()))")),
        ANSWERS.edited("names of inputs", 0, ("return (name, inputs)", "return (name, dict(zip(fed, inputs)))")),
        ANSWERS.edited("a model in place of the module", 5, ("module(*inputs)", FIRST), below=True),
        ANSWERS.edited("ordinary numbers", 8.5, (VALUES, "torch.randn(shape)")),
        ANSWERS.edited("no small numbers", 9.5, ("torch.rand(()) * 5", "torch.rand(())")),
        ANSWERS.edited("no halves", 8.5, ("if torch.rand(()) < 0.5 else", "if torch.rand(()) < 0 else")),
        ANSWERS.edited("nothing but halves", 9.5, ("if torch.rand(()) < 0.5 else", "if torch.rand(()) < 2 else")),
        ANSWERS.edited("no negative numbers", 8.5, ("torch.randint(low, high + 1, shape)", f"torch.{WHOLE}")),
        ANSWERS.edited("no large numbers", 8.5, ("high + 1, shape", "min(high, 100) + 1, shape")),
        ANSWERS.edited("masks that keep all", 8.5, ("torch.rand(shape) < torch.rand(())", "torch.rand(shape) < 2")),
        ANSWERS.edited(
            "sizes of their own", 8.75, ("sizes.get(size, size)", "int(torch.randint(1, 5, ()))"), below=True
        ),
        ANSWERS.edited("double precision", 1.5, ("* torch.rand(shape)", "* torch.rand(shape).double()")),
        ANSWERS.edited("beyond the limits", 10, ("(low + (high - low)", "(low + 200 * (high - low)"), below=True),
        ANSWERS.edited("one draw", 5, ("range(3000)", "range(1)"), below=True),
        ANSWERS.edited("every bit", 10, ("(0.0001, 0.01)", "(0, 0)"), below=True),
        ANSWERS.edited("a small difference", 10, ("(0.0001, 0.01)", "(0.0001, 0.0001)"), below=True),
    ),
    equivalent={
        **dict.fromkeys(
            (
                "torch.rand(shape) < torch.rand(()) -> torch.rand(shape) <= torch.rand(())",
                "torch.rand(()) < 0.5 -> torch.rand(()) <= 0.5",
                "3000 -> 3001",
                "10 -> 11",
                "5 -> 6",
            ),
            "other draws, as good as these",
        ),
        **dict.fromkeys(
            (
                "return ('first', inputs): 'first' -> 'first_'",
                "('first', inputs) -> ('first',)",
                "('first', inputs) -> (inputs,)",
                "return ('first', inputs) -> return None",
            ),
            "the search ends before",
        ),
        **dict.fromkeys(
            ("True -> False", "zip(promised, inputs, strict=True) -> zip(promised, inputs)"), "both are as long"
        ),
        "promised = sessions[0].get_inputs(): 0 -> 1": "both models have the same inputs",
    },
)
