"""Exercise 05.5: a pass that fuses silu(x + b) into one operator, and does not change similar patterns."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.fix_the_self_cycle import ready_to_run
from autograder.host.checks.fusion_checks import costs, rewrites
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec

OPERATOR = "torch.ops.course_lib.bias_silu"
WIDTH = 8
ROWS, BIAS = TensorSpec((4, WIDTH)), TensorSpec((WIDTH,))
MISSED = (
    "The sum may be `+`, `torch.add` or `.add`, in either order and with arguments by name; SiLU may be `F.silu`, "
    "`nn.SiLU`, or h * sigmoid(h)."
)
OTHERS = ((TensorSpec((1, WIDTH)), BIAS), (TensorSpec((129, WIDTH), scale=60.0), BIAS))
"""Other numbers of rows, and numbers so large that what limits them shows."""


def of(
    name: str,
    function: Callable[..., object],
    fused: int = 1,
    reason: str = "",
    inputs: Sequence[TensorSpec] = (ROWS, BIAS),
    at_most: int | None = None,
    plain: Program | None = None,
) -> Program:
    """Return a program of x (4, 8) and b (8,), or of other `inputs`."""
    others = OTHERS if tuple(inputs) == (ROWS, BIAS) else ()
    return Program(
        f"`{name}`", lambda: function, tuple(inputs), fused, others, reason, at_most, missed=MISSED, plain=plain
    )


def literal(x: Tensor, b: Tensor) -> Tensor:
    """Return the pattern as the exercise's text writes it."""
    return F.silu(x + b)


class FeedForward(nn.Module):
    """A linear layer whose bias is added by hand, SiLU as a module, and a second linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.up_bias = nn.Parameter(torch.zeros(2 * WIDTH))
        self.activation = nn.SiLU()
        self.down = nn.Linear(2 * WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        return self.down(self.activation(self.up(x) + self.up_bias))


FEED_FORWARD = Program("`FeedForward`", FeedForward, (ROWS,), 1, ((TensorSpec((129, WIDTH)),),), missed=MISSED)

PATTERN = of("F.silu(x + b)", literal)
SPELLINGS = [
    of("F.silu(torch.add(x, b))", lambda x, b: F.silu(torch.add(x, b))),
    of("F.silu(x * 2 + b) * 0.5", lambda x, b: F.silu((x * 2) + b) * 0.5),
]
READ_TWICE = [  # in both orders, so that no place among the nodes tells what is safe
    of(
        "h = x + b; F.silu(h) * h + F.silu(x + b)",
        lambda x, b: F.silu(h := x + b) * h + F.silu(x + b),
        1,
        "The first sum is also read by the product, so it must stay.",
    ),
    of(
        "F.silu(x + b) + F.silu(h := x + b) * h",
        lambda x, b: F.silu(x + b) + F.silu(h := x + b) * h,
        1,
        "The second sum is also read by the product, so it must stay.",
    ),
]


def _written(x: Tensor, b: Tensor) -> Tensor:
    h = x + b
    h.neg_()
    return F.silu(h) * F.silu(x + b)


NO_BIAS_SUM = [
    of(
        "F.silu(torch.add(x, b, alpha=0.5)) * F.silu(x + b)",
        lambda x, b: F.silu(torch.add(x, b, alpha=0.5)) * F.silu(x + b),
        reason="With alpha=0.5 the sum is x + b / 2.",
    ),
    of(
        "h = x + b; h.neg_(); F.silu(h) * F.silu(x + b)",
        _written,
        reason="The first sum is written to before SiLU reads it.",
        plain=of("F.silu(x + b)", literal),
    ),
    of(
        "F.silu((x + b).clamp(max=50)) * F.silu(x + b)",
        lambda x, b: F.silu((x + b).clamp(max=50)) * F.silu(x + b),
        reason="The first SiLU reads a limited sum, which is another one for large numbers.",
    ),
]


def large(rows: int, width: int) -> Program:
    """Return the pattern in a size whose time is that of moving bytes, to be timed."""
    return of("F.silu(x + b)", literal, inputs=(TensorSpec((rows, width)), TensorSpec((width,))))


EXERCISE = Exercise(
    title="A pass that fuses bias and SiLU",
    kind=Kind.GRAPH,
    entry_point="fuse_bias_silu",
    points=12,
    masked=("course_lib.fusion", "course_lib.schedule"),  # their patterns would solve the exercise
    wall_s=60,
    hints=(
        "Begin at the silu node and look at what it reads. Ask who else reads the sum: as long as somebody does, it "
        "cannot go away.",
        "Four steps for each match: insert the fused call before the sum, copy `meta`, `replace_all_uses_with`, then "
        "erase silu and sum in this order. After the loop come `lint()` and `recompile()`.",
        "Safe means: `len(total.users) == 1`, both `tensor_meta` there, the bias of one dimension that is the last "
        "one of x. Try both orders of the operands, and accept the function, the method and `nn.SiLU`.",
    ),
    speed=Speed(large(4096, 768), ideal_ratio=1.5, on_gpu=Speed(large(32768, 1024), ideal_ratio=2.0)),
    checks=(
        Check(
            "`F.silu(x + b)` becomes one call",
            "pattern",
            0.5,
            rewrites([PATTERN], OPERATOR, continued=True),
        ),
        Check(
            "`torch.add`, and a sum in the middle of a program",
            "spellings",
            0.5,
            rewrites(SPELLINGS, OPERATOR, continued=True),
        ),
        Check(
            "`nn.SiLU` in a module with parameters", "modules", 0.5, rewrites([FEED_FORWARD], OPERATOR, continued=True)
        ),
        Check(
            "the module runs the new graph",
            "ready to run",
            0.5,
            ready_to_run(rewrites([PATTERN], OPERATOR), PATTERN),
        ),
        Check(
            "a sum that is read twice stays",
            "refusals",
            1,
            rewrites(READ_TWICE, OPERATOR, together=True, continued=True),
        ),
        Check(
            "another sum stays, and one that is written to",
            "refusals",
            1,
            rewrites(NO_BIAS_SUM, OPERATOR, together=True, continued=True),
        ),
        Check(
            "one launch, minimum bytes",
            "counted cost",
            2,
            costs(of("F.silu(x + b)", literal), OPERATOR, launches=1),
            speed=True,
        ),
    ),
)
