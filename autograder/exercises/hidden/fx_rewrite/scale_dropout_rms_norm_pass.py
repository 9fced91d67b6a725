"""Hidden checks and controls of exercise 05.6."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.scale_dropout_rms_norm_pass import (
    AS_USUAL,
    BRANCH,
    COLUMN,
    EVALUATED,
    LARGE,
    OF_BRANCH,
    OPERATOR,
    PAIR,
    PAIRS,
    ROWS,
    USUAL,
    WIDTH,
    WITHOUT_CHANCE,
    Branch,
    formula,
    formula_of_branch,
    four,
    norm,
    of,
    revealing,
)
from autograder.exercises.fx_rewrite.scale_dropout_rms_norm_pass import evaluated as right
from autograder.exercises.hidden.answer_files import NOT_SEEN, Answers
from autograder.host.checks.dropout_checks import Dropping, drops
from autograder.host.checks.fusion_checks import costs, rewrites
from autograder.host.exercise import Check, HiddenPart
from autograder.host.traced import Program, TensorSpec

NEVER_DROPS = {"training": True, "p": 0.0, "eps": 1e-5}
SPELLINGS = [
    of("dropout(x * scale) + residual", lambda x, s, r, w: norm(F.dropout(x * s, 0.2, False) + r, w)),
    of("scale * x", lambda x, s, r, w: norm(r + F.dropout(s * x, 0.2, False), w)),
    of(
        "torch.mul, torch.add",
        lambda x, s, r, w: norm(torch.add(r, F.dropout(torch.mul(x, s), 0.0)), w),
        literals=NEVER_DROPS,
    ),
    of(
        "x.mul(scale), .add",
        lambda x, s, r, w: norm(F.dropout(x.mul(s), p=0.0, training=True).add(r), w),
        literals=NEVER_DROPS,
    ),
    of(
        "everything by name",
        lambda x, s, r, w: F.rms_norm(
            input=torch.add(input=r, other=F.dropout(input=torch.mul(input=s, other=x), training=False), alpha=1),
            normalized_shape=[WIDTH],
            weight=w,
            eps=1e-5,
        ),
    ),
    of("torch.rms_norm", lambda x, s, r, w: torch.rms_norm(r + F.dropout(x * s, 0.5, False), (WIDTH,), w, 1e-5)),
    of(
        "x of rank 3",
        lambda x, s, r, w: norm(r + F.dropout(x * s, 0.5, False), w),
        inputs=(TensorSpec((2, 3, WIDTH)), COLUMN, TensorSpec((2, 3, WIDTH)), COLUMN),
    ),
]


def _eps(eps: float | None, dtype: torch.dtype = torch.float32) -> Program:
    def program(x: Tensor, s: Tensor, r: Tensor, w: Tensor) -> Tensor:
        return norm(r + F.dropout(x * s, 0.1, False), w, eps)

    small = tuple(TensorSpec(spec.shape, dtype) for spec in USUAL)
    return of(f"eps={eps}, {dtype}", program, inputs=small, literals=_handed_on(eps, dtype))


def _handed_on(eps: float | None, dtype: torch.dtype = torch.float32) -> Mapping[str, Any]:
    return {"training": False, "eps": torch.finfo(dtype).eps if eps is None else eps}


class _Tiny(Branch):
    """A branch with numbers so small that eps determines the result."""

    def __init__(self, eps: float | None) -> None:
        super().__init__(0.1, eps)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return self.norm(residual * 1e-3 + self.drop((x * 1e-3) * self.scale))


def _tiny(eps: float | None) -> Program:
    name = f"`Branch` with eps={eps}, tiny numbers"
    return Program(name, lambda: _Tiny(eps), PAIR, 1, literals=_handed_on(eps))


EPS = [_eps(0.5), _tiny(None), _tiny(0.01), _eps(None, torch.float64)]


def _look_alike(name: str, program: Callable[..., Tensor], reason: str, *extra: TensorSpec) -> Program:
    """Return a program of the usual inputs and `extra` that adds the right formula to a similar wrong pattern.

    The right formula stands first in some and last in others, so that its place does not tell which it is.
    """
    return of(f"{name}, and a right one", program, reason=reason, inputs=(*USUAL, *extra))


class _Unweighted(Branch):
    def __init__(self) -> None:
        super().__init__()
        self.bare = nn.RMSNorm(WIDTH, elementwise_affine=False)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        return super().forward(x, residual) + self.bare(residual + self.drop(x * self.scale))


class _SquareNorm(nn.Module):
    def forward(self, x: Tensor, s: Tensor, r: Tensor, w: Tensor, v: Tensor) -> Tensor:
        h = r + F.dropout(x * s, 0.1, False)
        return F.rms_norm(h, (4, WIDTH), v, 1e-5) + right(x, s, r, w)


D = F.dropout
LOOK_ALIKES = [
    _look_alike(
        "alpha=2",
        lambda x, s, r, w: norm(torch.add(r, D(x * s, 0.1, False), alpha=2), w) + right(x, s, r, w),
        "With alpha=2 the sum is another.",
    ),
    _look_alike(
        "a residual of one row",
        lambda x, s, r, w, b: right(x, s, r, w) + norm(b + D(x * s, 0.1, False), w),
        "The operator takes a residual of x's shape.",
        COLUMN,
    ),
    _look_alike(
        "a scale of one column",
        lambda x, s, r, w, c: norm(r + D(x * c, 0.1, False), w) + right(x, s, r, w),
        "The operator's scale has one number a column.",
        TensorSpec((4, 1)),
    ),
    _look_alike(
        "a scale that is a number",
        lambda x, s, r, w: right(x, s, r, w) + norm(r + D(x * 0.5, 0.1, False), w),
        "The operator's scale has one number a column.",
    ),
    _look_alike(
        "a scale of x's shape",
        lambda x, s, r, w: norm(r + D(x * r, 0.1, False), w) + right(x, s, r, w),
        "The operator's scale has one number a column.",
    ),
    _look_alike(
        "LayerNorm",
        lambda x, s, r, w: right(x, s, r, w) + F.layer_norm(r + D(x * s, 0.1, False), (WIDTH,), w),
        "LayerNorm subtracts the mean.",
    ),
    _look_alike(
        "a difference", lambda x, s, r, w: right(x, s, r, w) + norm(r - D(x * s, 0.1, False), w), "r - d is no sum."
    ),
    _look_alike(
        "a product of two",
        lambda x, s, r, w: norm(r * D(x * s, 0.1, False), w) + right(x, s, r, w),
        "r * d is no sum.",
    ),
    _look_alike(
        "x + scale",
        lambda x, s, r, w: right(x, s, r, w) + norm(r + D(x + s, 0.1, False), w),
        "x + scale is no product.",
    ),
    _look_alike(
        "RMSNorm without a weight",
        lambda x, s, r, w: F.rms_norm(r + D(x * s, 0.1, False), (WIDTH,)) + right(x, s, r, w),
        "The operator takes a weight.",
    ),
    _look_alike(
        "another activation",
        lambda x, s, r, w: right(x, s, r, w) + norm(r + F.relu(x * s), w),
        "There is no dropout.",
    ),
    _look_alike(
        "a limited product",
        lambda x, s, r, w: norm(r + D((x * s).clamp(-90, 90), 0.1, False), w) + right(x, s, r, w),
        "A limited product is another one for large numbers.",
    ),
    _look_alike(
        "a residual of another dtype",
        lambda x, s, r, w, d: norm(d + D(x * s, 0.1, False), w.double()) + right(x, s, r, w),
        "The operator takes one dtype.",
        TensorSpec((4, WIDTH), torch.float64),
    ),
    _look_alike(
        "an input called mul in the place of the product",
        lambda x, s, r, w, mul: right(x, s, r, w) + norm(r + D(mul, 0.1, False), w),
        "An input is no product, whatever it is called.",
        ROWS,
    ),
    _look_alike(
        "an input called add in the place of the sum",
        lambda x, s, r, w, add: norm(add, w) + right(x, s, r, w),
        "An input is no sum, whatever it is called.",
        ROWS,
    ),
    Program("RMSNorm without weight, and `Branch`", _Unweighted, PAIR, 1, literals=OF_BRANCH),
    Program(
        "a norm over two dimensions, and a right one",
        _SquareNorm,
        (*USUAL, TensorSpec((4, WIDTH))),
        1,
        literals=AS_USUAL,
    ),
]


def _residual_written(x: Tensor, s: Tensor, r: Tensor, w: Tensor) -> Tensor:
    first, base = right(x, s, r, w), r * 1.0
    h = base + D(x * s, 0.1, False)
    base.add_(1.0)
    return norm(h, w) * base + first


def _x_written(x: Tensor, s: Tensor, r: Tensor, w: Tensor) -> Tensor:
    first, base = right(x, s, r, w), x * 1.0
    h = base * s
    F.relu(base, inplace=True)
    return norm(r + D(h, 0.1, False), w) * base + first


def _late_residual(x: Tensor, s: Tensor, r: Tensor, w: Tensor) -> Tensor:
    d = D(x * s, 0.1, False)
    late = torch.tanh(r)
    return norm(late + d, w * 2)


WRITTEN = "A node between product and norm writes to what the fused call reads: refuse, or the call reads it too late."
ESCAPES = [
    of(
        "h = x * scale; norm(...) + h, between two right ones",
        lambda x, s, r, w: right(x, s, r, w) + norm(r + D(h := x * s, 0.1, False), w) + h + right(r, s, x, w),
        2,
        "The product is read by the sum, too.",
    ),
    of(
        "d = dropout(x * scale); norm(r + d) * d, and a right one",
        lambda x, s, r, w: norm(r + (d := D(x * s, 0.1, False)), w) * d + right(x, s, r, w),
        reason="d is read by the product, too.",
    ),
    of("the residual is written to before the norm", _residual_written, 1, WRITTEN, at_most=2, plain=EVALUATED),
    of("x is written to after the product", _x_written, 1, WRITTEN, at_most=2, plain=EVALUATED),
    of(
        "residual and weight computed late",
        _late_residual,
        reason="Residual and weight are computed after dropout, and the call has to stand behind them.",
    ),
]


class _Layer(nn.Module):
    """Two branches followed by norms, as in post-norm layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Branch(), Branch(0.3, None)
        self.up, self.down = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        h = self.first(self.up(x), residual)
        return self.second(F.silu(self.down(h)), h)


class _PreNorm(nn.Module):
    """One branch whose sum is used again after the norm, and one whose sum is not."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = Branch(), Branch(0.3)
        self.down = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        h = residual + self.first.drop(x * self.first.scale)
        return self.second(self.down(self.first.norm(h)), h)


SEVERAL = [
    Program("two post-norm branches", _Layer, PAIR, 2, PAIRS),
    Program("a pre-norm branch and a post-norm branch", _PreNorm, PAIR, 1, PAIRS),
]


def _called_by_default() -> fx.GraphModule:
    """Return a graph in which dropout has no arguments but its input, as in graphs that were built by hand."""
    module = fx.symbolic_trace(lambda x, s, r, w: norm(F.dropout(s * x) + r, w))
    (dropout,) = module.graph.find_nodes(op="call_function", target=F.dropout)
    dropout.args, dropout.kwargs = dropout.args[:1], {}
    module.recompile()
    return module


HALF = Program(
    "`F.dropout(scale * x)` as it is called by default",
    _called_by_default,
    USUAL,
    1,
    training=True,
    literals={"training": True, "p": 0.5, "eps": 1e-5},
)
DROPOUT = [
    Dropping(HALF, 0.5, four, formula),
    Dropping(
        Program(
            "`Branch` in training",
            lambda: Branch(0.4, 1e-3),
            PAIR,
            1,
            training=True,
            literals={"training": True, "p": 0.4, "eps": 1e-3},
        ),
        0.4,
        revealing,
        formula_of_branch,
    ),
]
LONG = of("norm(dropout(x * scale) + residual), 64 rows", SPELLINGS[0].build(), inputs=LARGE)

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("other spellings", "spellings", 0.5, rewrites(SPELLINGS, OPERATOR)),
        Check("eps is carried over", "eps", 0.5, rewrites(EPS, OPERATOR)),
        Check("look-alikes stay", "refusals", 2, rewrites(LOOK_ALIKES, OPERATOR, together=True)),
        Check("what is needed elsewhere stays", "refusals", 2, rewrites(ESCAPES, OPERATOR, together=True)),
        Check("several places in one program", "several places", 0.5, rewrites(SEVERAL, OPERATOR)),
        Check("the backward pass uses the same mask", "dropout", 0.5, drops(DROPOUT, OPERATOR, gradients=True)),
        Check("gradients", "gradients", 0.5, rewrites([WITHOUT_CHANCE, BRANCH], OPERATOR, gradients=True)),
        Check("minimum bytes at another size", "counted cost", 1.5, costs(LONG, OPERATOR, launches=1), speed=True),
    ),
    controls=(
        ANSWERS.reference(18),
        ANSWERS.edited(
            "the last place, unchecked",
            15,
            ("for node in list(graph.nodes):", "for node in reversed(list(graph.nodes)):"),
            ("graph.erase_node(old)", "graph.erase_node(old) if not old.users else None\n        break"),
            ("any((len(n.users) != 1 for n in (total, dropped, product)))", "False"),
            ("any(map(written, between))", "any(map(written, nodes))"),
            below=True,
        ),
        ANSWERS.joined(
            "searched by values", 10.8, ANSWERS.of_lesson("by_values"), ANSWERS.text_of("searched by values")
        ),
        ANSWERS.edited("never training", 18, ("weight, *options, eps)", "weight, options[0], False, eps)"), below=True),
    ),
    equivalent=NOT_SEEN,
)
