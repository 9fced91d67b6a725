"""Exercise 05.4: fold the affine part of a normalisation into the Linear that follows it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn

from autograder.host.checks.rewrite_checks import Rewriting, WrongTurn, rewritten
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.traced import Program, TensorSpec

WIDTH = 6
ROWS = TensorSpec((5, WIDTH))


def batch_norm(width: int = WIDTH, **options: bool) -> nn.BatchNorm1d:
    """Return a BatchNorm whose running statistics differ from the initial values."""
    norm = nn.BatchNorm1d(width, eps=1e-3, **options)
    if norm.running_mean is not None and norm.running_var is not None:
        norm.running_mean.copy_(torch.linspace(-1, 2, width))
        norm.running_var.copy_(torch.linspace(0.3, 3, width))
    return norm


def folded(
    name: str,
    build: Callable[[], nn.Module],
    calls: int,
    tensors: int,
    *turns: WrongTurn,
    reason: str = "",
    training: bool = False,
    rows: TensorSpec = ROWS,
) -> Rewriting:
    """Return a module on rows (5, 6), and its numbers of calls, parameters and buffers after the pass."""
    other = TensorSpec((7, *rows.shape[1:]), rows.dtype)
    program = Program(f"`{name}`", build, (rows,), 0, ((other,),), reason, folds=True, training=training)
    return Rewriting(program, calls, wrong_turns=turns, tensors=tensors)


class Normed(nn.Module):
    """A normalisation followed by a Linear."""

    def __init__(self, norm: nn.Module, linear: nn.Linear | None = None) -> None:
        super().__init__()
        self.norm, self.linear = norm, linear or nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 6) to (rows, 4)."""
        return self.linear(self.norm(x))


class ReadTwice(Normed):
    """The normalised rows of the first pair are also added to the result; those of a second pair are not."""

    def __init__(self, norm: Callable[[], nn.Module]) -> None:
        super().__init__(norm(), nn.Linear(WIDTH, WIDTH))
        self.inner, self.outer = norm(), nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 6) to (rows, 6)."""
        h = self.norm(x)
        return self.outer(self.inner(h + self.linear(h)))


def _unshifted(module: fx.GraphModule) -> Callable[..., object]:
    norm: Any = module.get_submodule("norm")
    shift = norm.bias if isinstance(norm, nn.LayerNorm) else norm(torch.zeros(1, WIDTH, dtype=norm.weight.dtype))
    return lambda x: module.get_submodule("linear")(norm(x) - shift)


def _without_eps(module: fx.GraphModule) -> Callable[..., object]:
    norm: Any = module.get_submodule("norm")
    norm.eps = 0.0
    return module


def _not_normalised(module: fx.GraphModule) -> Callable[..., object]:
    norm: Any = module.get_submodule("norm")
    return lambda x: module.get_submodule("linear")(x * norm.weight + norm.bias)


GONE = WrongTurn("LayerNorm is gone, but each row still has to be normalised.", of_module=_not_normalised)
NO_SHIFT = WrongTurn(
    "the shift is missing: what the normalisation adds goes through the Linear's weight into its bias.",
    of_module=_unshifted,
)
NO_EPS = WrongTurn(
    "eps was left out: BatchNorm divides by the square root of running_var + eps.", of_module=_without_eps
)

BATCH_NORM = folded("linear(batch_norm(x))", lambda: Normed(batch_norm()), 1, 2, NO_SHIFT, NO_EPS)
LAYER_NORM = folded("linear(layer_norm(x))", lambda: Normed(nn.LayerNorm(WIDTH)), 2, 2, NO_SHIFT, GONE)
ESCAPES = "The normalised rows are read by the sum, too: only the second pair can be folded."
READ_TWICE = [
    folded(
        "h = norm(x); outer(inner(h + linear(h))), with BatchNorm",
        lambda: ReadTwice(batch_norm),
        4,
        9,
        WrongTurn("h is also read by the sum, which now gets something else. Refuse there.", calls=3),
        reason=ESCAPES,
    ),
    folded(
        "h = norm(x); outer(inner(h + linear(h))), with LayerNorm",
        lambda: ReadTwice(lambda: nn.LayerNorm(WIDTH)),
        5,
        6,
        reason=ESCAPES,
    ),
]

EXERCISE = Exercise(
    title="Fold a normalisation into the Linear behind it",
    kind=Kind.GRAPH,
    entry_point="fold_affine",
    points=10,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends"),
    wall_s=30,
    hints=(
        "Both normalisations end in a·n + c, one number a and c for each column. Write W(a·n + c) + b without them.",
        "For BatchNorm in evaluation everything is constant: a = weight / sqrt(running_var + eps), and c is what is "
        "left for n = 0. For LayerNorm n still has to be computed: it stays, without its own weight and bias.",
        "The new weight is `linear.weight * a`, the new bias `linear.weight @ c` plus the old one; put a new nn.Linear "
        "in with `set_submodule`, and refuse where anybody else reads the node or uses the layer.",
    ),
    checks=(
        Check("BatchNorm goes into the Linear behind it", "BatchNorm", 2.2, rewritten([BATCH_NORM])),
        Check("LayerNorm loses its weight and bias", "LayerNorm", 2.2, rewritten([LAYER_NORM])),
        Check("what somebody else reads stays", "refusals", 1.6, rewritten(READ_TWICE)),
    ),
)
