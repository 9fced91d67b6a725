"""Exercise 05.4: fold the affine part of a normalisation into the Linear that follows it."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F

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


def neutral(norm: Any) -> Any:
    """Return the normalisation with values for which its scale is one and its shift zero, whatever eps is.

    A pass that folds it by a wrong formula changes no value. So beside what must stay, that formula is not asked again.
    """
    norm.requires_grad_(False)
    norm.weight.fill_(1.0)
    norm.bias.zero_()
    if isinstance(norm, nn.BatchNorm1d) and norm.running_mean is not None and norm.running_var is not None:
        norm.running_mean.zero_()
        norm.running_var.fill_(1e4)
        norm.weight.fill_(1e2)
    return norm


def _normalised(norm: Any) -> Callable[[Tensor], Tensor]:
    """Return what is left to compute when the norm's scale and shift are in the Linear."""
    if isinstance(norm, nn.BatchNorm1d):
        return lambda x: x
    return lambda x: F.layer_norm(x, norm.normalized_shape, eps=norm.eps)


def misplaced(says: str, change: Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]) -> WrongTurn:
    """Return the wrong turn of a fold that gets the Linear's parameters from its old ones, scale and shift so."""

    def of_module(module: fx.GraphModule) -> Callable[..., object] | None:
        norm: Any = getattr(module, "norm", None)
        linear: Any = getattr(module, "linear", None)
        if type(norm) not in (nn.LayerNorm, nn.BatchNorm1d) or type(linear) is not nn.Linear:
            return None
        if norm.weight is None or norm.bias is None or linear.bias is None:
            return None
        scale, shift, before = norm.weight, norm.bias, _normalised(norm)
        if hasattr(norm, "running_var"):
            scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
            shift = norm.bias - norm.running_mean * scale
        weight, bias = change(linear.weight, linear.bias, scale, shift)
        return lambda x: F.linear(before(x), weight, bias)

    return WrongTurn(says, of_module=of_module)


MISPLACED = (
    misplaced(
        "the scale was applied to the rows of the weight; its columns belong to the columns that are normalised.",
        lambda w, b, scale, shift: (w * scale[: w.shape[0], None] if w.shape[0] <= w.shape[1] else w, w @ shift + b),
    ),
    misplaced("the Linear's own bias is lost.", lambda w, b, scale, shift: (w * scale, w @ shift)),
    misplaced(
        "the shift went through the scaled weight; it goes through the old one.",
        lambda w, b, scale, shift: (w * scale, (w * scale) @ shift + b),
    ),
    misplaced(
        "the shift was added to the weighted sum a second time.",
        lambda w, b, scale, shift: (w * scale, 2 * (w @ shift) + b),
    ),
)
LEFT = "A normalisation that can be folded still has its weight and bias, or is still called."


def folded(
    name: str,
    build: Callable[[], nn.Module],
    calls: int,
    tensors: int,
    *turns: WrongTurn,
    reason: str = "",
    training: bool = False,
    rows: TensorSpec = ROWS,
    warning: str = "",
) -> Rewriting:
    """Return a module on rows (5, 6), and its numbers of calls, parameters and buffers after the pass."""
    other = TensorSpec((7, *rows.shape[1:]), rows.dtype)
    program = Program(f"`{name}`", build, (rows,), 0, ((other,),), reason, folds=True, training=training)
    turns = (*turns, *MISPLACED)
    return Rewriting(program, calls, wrong_turns=turns, tensors=tensors, warning=warning, left=LEFT)


class Normed(nn.Module):
    """A normalisation followed by a Linear."""

    def __init__(self, norm: nn.Module, linear: nn.Linear | None = None) -> None:
        super().__init__()
        self.norm, self.linear = norm, linear or nn.Linear(WIDTH, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 6) to (rows, 4)."""
        return self.linear(self.norm(x))


class ReadTwice(Normed):
    """The normalised rows of one pair are also added to the result; those of a pair before or behind it are not."""

    def __init__(self, norm: Callable[[], nn.Module], *, last: bool = False) -> None:
        super().__init__(norm(), nn.Linear(WIDTH, WIDTH))
        self.inner, self.outer, self.last = neutral(norm()), nn.Linear(WIDTH, WIDTH), last

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 6) to (rows, 6)."""
        h = self.norm(self.outer(self.inner(x)) if self.last else x)
        return h + self.linear(h) if self.last else self.outer(self.inner(h + self.linear(h)))


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
ESCAPES = "The normalised rows are read by the sum, too: only the other pair can be folded."
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
        "h = norm(outer(inner(x))); h + linear(h), with LayerNorm",
        lambda: ReadTwice(lambda: nn.LayerNorm(WIDTH), last=True),
        5,
        6,
        reason=ESCAPES,
    ),
]


class Training(nn.Module):
    """A module in training mode, except for one frozen pair."""

    def __init__(self, norm: Callable[[], nn.Module], frozen: str) -> None:
        super().__init__()
        self.frozen = frozen
        self.norm, self.linear, self.inner, self.outer = norm(), nn.Linear(6, 6), norm(), nn.Linear(6, 6)
        neutral(self.get_submodule(frozen))

    def train(self, mode: bool = True) -> "Training":
        """Set the mode of all parts but the frozen one."""
        super().train(mode)
        self.get_submodule(self.frozen).eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 6) to (rows, 6)."""
        return self.outer(self.inner(self.linear(self.norm(x))))


OWN_BATCH = "BatchNorm in training normalises with its batch."
IN_TRAINING = folded(
    "outer(inner(linear(norm(x)))) in training, but for inner",
    lambda: Training(batch_norm, "inner"),
    3,
    9,
    training=True,
    reason=OWN_BATCH,
)

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
        Check("BatchNorm goes into the Linear behind it", "BatchNorm", 2, rewritten([BATCH_NORM], continued=True)),
        Check("LayerNorm loses its weight and bias", "LayerNorm", 2, rewritten([LAYER_NORM], continued=True)),
        Check("what somebody else reads stays", "refusals", 1, rewritten(READ_TWICE, continued=True)),
        Check("a BatchNorm in training stays", "training mode", 0.5, rewritten([IN_TRAINING])),
    ),
)
