"""Hidden checks and controls of exercise 05.4."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from autograder.exercises.fx_rewrite.fold_affine import OWN_BATCH, WIDTH, Normed, Training, batch_norm, folded, neutral
from autograder.exercises.hidden.answer_files import NO_OPERATORS, Answers
from autograder.host.checks.rewrite_checks import rewritten
from autograder.host.exercise import Check, HiddenPart
from autograder.host.traced import TensorSpec


def _layer_norm() -> nn.LayerNorm:
    return nn.LayerNorm(WIDTH)


BARE = [
    folded("linear(batch_norm(x)), no bias", lambda: Normed(batch_norm(), nn.Linear(6, 4, bias=False)), 1, 2),
    folded("linear(layer_norm(x)), no bias", lambda: Normed(_layer_norm(), nn.Linear(6, 4, bias=False)), 2, 2),
    folded("linear(batch_norm(x)), BatchNorm without weight", lambda: Normed(batch_norm(affine=False)), 1, 2),
    folded("linear(layer_norm(x)), no bias in LayerNorm", lambda: Normed(nn.LayerNorm(WIDTH, 0.3, bias=False)), 2, 2),
]


class _Shared(nn.Module):
    """One Linear after two normalisations, or one normalisation before two Linears; a separate pair at either end."""

    def __init__(self, norm: Callable[[], nn.Module], *, linear_twice: bool, last: bool = False) -> None:
        super().__init__()
        self.norm, self.linear = norm(), nn.Linear(WIDTH, WIDTH)
        self.other = nn.Linear(WIDTH, WIDTH) if not linear_twice else self.linear
        self.inner, self.outer = neutral(norm()), nn.Linear(WIDTH, WIDTH)
        self.linear_twice, self.last = linear_twice, last

    def forward(self, x: Tensor) -> Tensor:
        h = torch.relu(self.linear(self.norm(self.outer(self.inner(x)) if self.last else x)))
        h = self.linear(h) if self.linear_twice else self.other(self.norm(h))
        return h if self.last else self.outer(self.inner(h))


class _Tied(nn.Module):
    """Two Linears that share one weight; a normalisation is before the first."""

    def __init__(self, norm: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.norm, self.linear, self.tied = norm(), nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.tied.weight = self.linear.weight
        self.inner, self.outer = norm(), nn.Linear(WIDTH, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(torch.relu(self.tied(self.linear(self.norm(x))))))


SEVERAL_CALLS = "A layer that is called twice has one weight for both."
SHARED = [
    folded(
        "linear(norm(x)) and linear(h), with BatchNorm",
        lambda: _Shared(batch_norm, linear_twice=True),
        5,
        9,
        reason=SEVERAL_CALLS,
    ),
    folded(
        "a pair, then linear(norm(x)) and linear(h), with LayerNorm",
        lambda: _Shared(_layer_norm, linear_twice=True, last=True),
        6,
        6,
        reason=SEVERAL_CALLS,
    ),
    folded(
        "linear(norm(x)) and other(norm(h)), one LayerNorm",
        lambda: _Shared(_layer_norm, linear_twice=False),
        7,
        8,
        reason=SEVERAL_CALLS,
    ),
]


class _Tail(nn.Module):
    def __init__(self, first: nn.Module, second: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList([first, nn.Linear(WIDTH, WIDTH), second, nn.Linear(WIDTH, WIDTH)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x)
        return x


class _Between(nn.Module):
    def __init__(self, norm: nn.Module, *, last: bool = False) -> None:
        super().__init__()
        self.norm, self.linear, self.inner, self.outer = norm, nn.Linear(6, 6), neutral(batch_norm()), nn.Linear(6, 6)
        self.last = last

    def forward(self, x: Tensor) -> Tensor:
        h = self.linear(torch.relu(self.norm(self.outer(self.inner(x)) if self.last else x)))
        return h if self.last else self.outer(self.inner(h))


class _Cube(nn.Module):
    """BatchNorm normalises the middle dimension, Linear works on the last; both are 6 long."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.linear = batch_norm(), nn.Linear(6, 6)
        self.inner, self.outer = neutral(_layer_norm()), nn.Linear(6, 6)

    def forward(self, x: Tensor) -> Tensor:
        return self.outer(self.inner(self.linear(self.norm(x))))


def _two_dimensions() -> nn.Module:
    return _Tail(neutral(nn.LayerNorm(WIDTH)), nn.LayerNorm([WIDTH, WIDTH]))


def _own_statistics() -> nn.Module:
    return _Tail(batch_norm(track_running_stats=False), neutral(batch_norm()))


CUBE = TensorSpec((2, WIDTH, WIDTH))
LOOK_ALIKES = [
    folded("linear(relu(batch_norm(x))), then a pair", lambda: _Between(batch_norm()), 4, 9),
    folded("a pair, then linear(relu(layer_norm(x)))", lambda: _Between(_layer_norm(), last=True), 4, 6),
    folded(
        "BatchNorm on (2, 6, 6), then a LayerNorm pair", _Cube, 4, 9, rows=CUBE, reason="It scales rows, not columns."
    ),
    folded("a pair, then LayerNorm over two dimensions", _two_dimensions, 4, 6, rows=CUBE),
    folded("BatchNorm without running statistics, then a pair", _own_statistics, 3, 6, reason="It looks at its batch."),
    folded("a pair, then linear(group_norm(x))", lambda: _Tail(neutral(batch_norm()), nn.GroupNorm(2, WIDTH)), 3, 6),
]
DEEP = [
    folded("two BatchNorms in a list of layers", lambda: _Tail(batch_norm(), batch_norm()), 2, 4),
    folded("two LayerNorms in a list of layers", lambda: _Tail(_layer_norm(), _layer_norm()), 4, 4),
    folded(
        "one weight in two Linears",
        lambda: _Tied(batch_norm),
        4,
        6,
        warning="The other Linear holds the same weight. Written in place, it changes there, too: give the folded "
        "Linear a weight of its own.",
    ),
]


TRAINING = [
    folded(
        "in training, but for the second BatchNorm",
        lambda: Training(batch_norm, "inner"),
        3,
        9,
        training=True,
        reason=OWN_BATCH,
    ),
    folded(
        "in training, but for the first BatchNorm",
        lambda: Training(batch_norm, "norm"),
        3,
        9,
        training=True,
        reason=OWN_BATCH,
    ),
]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("without bias, without weight", "no bias", 1, rewritten(BARE)),
        Check("layers that are called twice", "refusals", 1, rewritten(SHARED, together=True)),
        Check("look-alikes stay", "refusals", 1, rewritten(LOOK_ALIKES, together=True)),
        Check("training mode", "training mode", 0.5, rewritten(TRAINING, together=True)),
        Check("several pairs, and one weight in two layers", "several places", 1, rewritten(DEEP)),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited(
            "the norm's own tensors taken away",
            10,
            (
                "graph_module.set_submodule(before.target, nn.LayerNorm(norm.normalized_shape, norm.eps, False))",
                "norm.weight = norm.bias = None",
            ),
        ),
        ANSWERS.file("the last pair, unchecked", 6.1, below=True),
        ANSWERS.edited("in training, too", 6, ("(not norm.training)", "True")),
        ANSWERS.edited("without the shift", 5, ("old @ shift + (0 if", "(0 if"), below=True),
    ),
    right_here=NO_OPERATORS,
    equivalent={"graph_module.recompile() -> pass": "nodes cross to the host, not generated code"},
)
