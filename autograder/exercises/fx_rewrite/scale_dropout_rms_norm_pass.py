"""Exercise 05.6: a pass that fuses scale, dropout, residual and RMSNorm into one operator, also in training."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

from autograder.host.checks.dropout_checks import Dropping, drops
from autograder.host.checks.fusion_checks import costs, rewrites
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec

OPERATOR = "torch.ops.course_lib.scale_dropout_residual_rms_norm"
WIDTH = 8
ROWS, COLUMN = TensorSpec((4, WIDTH)), TensorSpec((WIDTH,))
MISSED = (
    "Read p, training, eps and the shape from nodes and modules: a number in a pattern fits that number only. Sum and "
    "product have either order, and dropout and norm may be functions or modules."
)
USUAL = (ROWS, COLUMN, ROWS, COLUMN)  # x, scale, residual, weight
AS_USUAL: Mapping[str, Any] = {"training": False, "eps": 1e-5}  # numbers and flags; p has no effect in evaluation
OTHERS = tuple(
    (TensorSpec((n, WIDTH), scale=scale), COLUMN, TensorSpec((n, WIDTH), scale=scale), COLUMN)
    for n, scale in ((1, 1.0), (129, 60.0))
)
"""Other numbers of rows, and numbers so large that what limits them shows."""


def of(
    name: str,
    function: Callable[..., object],
    fused: int = 1,
    reason: str = "",
    inputs: Sequence[TensorSpec] = USUAL,
    at_most: int | None = None,
    training: bool = False,
    plain: Program | None = None,
    literals: Mapping[str, Any] | None = None,
) -> Program:
    """Return a program of x (4, 8), scale (8,), residual (4, 8) and weight (8,), or of other `inputs`."""
    return Program(
        f"`{name}`",
        lambda: function,
        tuple(inputs),
        fused,
        OTHERS if tuple(inputs) == USUAL else (),
        reason,
        at_most,
        training=training,
        missed=MISSED,
        plain=plain,
        literals=AS_USUAL if literals is None else literals,
    )


def norm(h: Tensor, weight: Tensor, eps: float | None = 1e-5) -> Tensor:
    """Return RMSNorm over the last dimension, which is 8 long."""
    return F.rms_norm(h, (WIDTH,), weight, eps)


def evaluated(x: Tensor, scale: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
    """Return the formula in evaluation, where p has no effect."""
    return norm(residual + F.dropout(x * scale, 0.3, False), weight)


class Branch(nn.Module):
    """The end of a layer's branch: a learnt scale, dropout, residual, RMSNorm."""

    def __init__(self, p: float = 0.1, eps: float | None = 1e-6) -> None:
        super().__init__()
        self.scale, self.drop = nn.Parameter(torch.zeros(WIDTH)), nn.Dropout(p)
        self.norm = nn.RMSNorm(WIDTH, eps=eps)

    def forward(self, x: Tensor, residual: Tensor) -> Tensor:
        """Map two tensors (rows, 8) to (rows, 8)."""
        return self.norm(residual + self.drop(x * self.scale))


PAIR = (ROWS, ROWS)
PAIRS = ((TensorSpec((3, WIDTH)), TensorSpec((3, WIDTH))),)
OF_BRANCH: Mapping[str, Any] = {"training": False, "eps": 1e-6, "p": 0.1}
BRANCH = Program("`Branch`", Branch, PAIR, 1, PAIRS, missed=MISSED, literals=OF_BRANCH)


def revealing(draw: Draw, rows: int = 512) -> tuple[Tensor, Tensor]:
    """Return x and residual for which a zero after the first column shows that x was dropped there."""
    x, residual = draw.normal(rows, WIDTH), torch.zeros(rows, WIDTH)
    x = x + 0.1 * torch.where(x < 0, -1.0, 1.0)
    x[:, 0], residual[:, 0] = 0.0, 1 + draw.normal(rows).abs()
    return x, residual


def _columns(draw: Draw) -> Tensor:
    values = draw.normal(WIDTH)
    return values + 0.2 * torch.where(values < 0, -1.0, 1.0)


def four(draw: Draw) -> tuple[Tensor, ...]:
    """Return the four inputs of the written-out formula."""
    x, residual = revealing(draw)
    return x, _columns(draw), residual, _columns(draw)


def formula(module: fx.GraphModule, inputs: Sequence[Tensor], factors: Tensor) -> Tensor:
    """Return the written-out formula with the given dropout factors."""
    x, scale, residual, weight = inputs
    return norm(residual + x * scale * factors, weight)


def formula_of_branch(module: Any, inputs: Sequence[Tensor], factors: Tensor) -> Tensor:
    """Return the formula with the parameters of `Branch`."""
    x, residual = inputs
    return F.rms_norm(residual + x * module.scale * factors, (WIDTH,), module.norm.weight, module.norm.eps)


LARGE = (TensorSpec((512, WIDTH)), COLUMN, TensorSpec((512, WIDTH)), COLUMN)
WITHOUT_CHANCE = of(
    "p=0, in training",
    lambda x, scale, residual, weight: norm(residual + F.dropout(x * scale, 0.0, True), weight),
    literals={"training": True, "p": 0.0, "eps": 1e-5},
)
EVALUATED = of("p=0.3, in evaluation", evaluated, literals={"training": False, "p": 0.3, "eps": 1e-5})
TRAINED = of(
    "p=0.25, in training",
    lambda x, scale, residual, weight: norm(residual + F.dropout(x * scale, 0.25, True), weight),
    training=True,
    literals={"training": True, "p": 0.25, "eps": 1e-5},
)
SUM_ESCAPES = of(
    "a right one; h = residual + dropout(x * scale); return ... + norm(h), h",
    lambda x, scale, residual, weight: (
        evaluated(x, scale, residual, weight) + norm(h := residual + F.dropout(x * scale, 0.1, False), weight),
        h,
    ),
    1,
    "The sum h is an output of the program, and the operator does not return it.",
)
SUM_DROPPED = of(
    "norm(dropout(residual + x * scale)), and a right one",
    lambda x, scale, residual, weight: (
        norm(F.dropout(residual + x * scale, 0.1, False), weight) + evaluated(x, scale, residual, weight)
    ),
    reason="Here the residual falls out, too.",
)

SUM_LIMITED = of(
    "norm((residual + dropout(x * scale)).clamp(max=50)), and a right one",
    lambda x, scale, residual, weight: (
        norm((residual + F.dropout(x * scale, 0.1, False)).clamp(max=50), weight)
        + evaluated(x, scale, residual, weight)
    ),
    reason="Here the norm reads a limited sum, which is another one for large numbers.",
)


def large(rows: int, width: int) -> Program:
    """Return the pattern in evaluation, in a size whose time is that of moving bytes, to be timed."""

    def wide(x: Tensor, scale: Tensor, residual: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(residual + F.dropout(x * scale, 0.3, False), (width,), weight, 1e-5)

    row, column = TensorSpec((rows, width)), TensorSpec((width,))
    return of("norm(residual + dropout(x * scale))", wide, inputs=(row, column, row, column))


EXERCISE = Exercise(
    title="A pass that fuses scale, dropout, residual and RMSNorm",
    kind=Kind.GRAPH,
    entry_point="fuse_scale_dropout_rms_norm",
    points=18,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends"),  # their BDRL would solve the exercise
    wall_s=60,
    # a fused operator reads or writes rows three times; separate ones seven times, and twelve times on the CPU, where
    # RMSNorm is four operators that find rows in the cache
    speed=Speed(large(4096, 768), ideal_ratio=3.0, on_gpu=Speed(large(32768, 1024), ideal_ratio=7 / 3)),
    hints=(
        "Start at the normalisation and walk back: what must its input be, and what that one's? Write down at each "
        "step who else may read the node.",
        "Write one function a step: `norm_parts`, `dropout_parts`, `product_parts`, each returning what the operator "
        "needs or None. Sum and product have two orders: try both.",
        "Training and p of nn.Dropout are those of `graph_module.get_submodule(node.target)`; where eps is None, torch "
        "takes `torch.finfo(dtype).eps`; put the call where the normalisation stood, unless "
        "something in between writes.",
    ),
    checks=(
        Check(
            "the written-out formula becomes one call",
            "pattern",
            1,
            rewrites([WITHOUT_CHANCE, EVALUATED], OPERATOR, continued=True),
        ),
        Check(
            "`nn.Dropout` and `nn.RMSNorm` with parameters",
            "modules",
            2,
            rewrites([BRANCH], OPERATOR, continued=True),
        ),
        Check(
            "in training, elements fall out at the program's rate",
            "dropout",
            1,
            drops([Dropping(TRAINED, 0.25, four, formula)], OPERATOR),
        ),
        Check(
            "a sum that goes on stays",
            "refusals",
            2,
            rewrites([SUM_ESCAPES], OPERATOR, continued=True, together=True),
        ),
        Check(
            "dropout of the whole sum stays, and a limited sum",
            "refusals",
            1,
            rewrites([SUM_DROPPED, SUM_LIMITED], OPERATOR, continued=True, together=True),
        ),
        Check("one launch, minimum bytes", "counted cost", 3, costs(EVALUATED, OPERATOR, launches=1), speed=True),
    ),
)
