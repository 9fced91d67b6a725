"""Exercise 05.2: erase dead code, and compute constants beforehand."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.exercises.programs.library_passes import PASSES_OF_TORCH
from autograder.host.checks.rewrite_checks import Rewriting, WrongTurn, rewritten
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.traced import Program, TensorSpec

WIDTH = 8
ROWS = TensorSpec((4, WIDTH))
LARGE = ((TensorSpec((5, WIDTH), scale=100.0),),)
"""Numbers so large that what they exceed shows; no pass sees them."""


LEFT = "A call is left that nobody reads, or that reads buffers alone and could be computed beforehand."


def tidied(
    name: str,
    program: Callable[..., object] | type[nn.Module],
    calls: int,
    *turns: WrongTurn,
    counts: Mapping[str, int] | None = None,
    reason: str = "",
    warning: str = "",
    others: tuple[tuple[TensorSpec, ...], ...] = ((TensorSpec((1, WIDTH)),),),
) -> Rewriting:
    """Return a program of x (4, 8), its number of calls after the pass, and of the calls with an effect in `counts`."""
    build = program if isinstance(program, type) else lambda: program
    made = Program(f"`{name}`", build, (ROWS,), 0, others, reason, buffers=True)
    return Rewriting(made, calls, counts or {}, wrong_turns=turns, warning=warning, left=LEFT, effects=True)


class Buffers(nn.Module):
    """A module with two buffers, which training does not change, and a parameter, which training changes."""

    scale: Tensor
    shift: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("scale", torch.linspace(0.5, 1.5, WIDTH))
        self.register_buffer("shift", torch.linspace(-1.0, 1.0, WIDTH))
        self.weight = nn.Parameter(torch.zeros(WIDTH))


def _dead(x: Tensor) -> Tensor:
    h = torch.relu(x)
    (h + 1).exp()
    return h * 2


def _dead_twice(x: Tensor) -> Tensor:
    torch.sigmoid(x).sum(0)
    return x - torch.tanh(x).mul(2)


def _kept(x: Tensor) -> Tensor:
    h = torch.relu(x)
    h.add_(1)
    torch.tanh(h)
    return h


def _drawn(x: Tensor) -> Tensor:
    F.dropout(x, 0.5, True)
    torch.exp(x)
    return x - 3


class Folded(Buffers):
    """One factor that depends only on a buffer."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        return x * (self.scale.exp() + 1)


class FoldedTwice(Buffers):
    """Two constants, each of several steps, one of which is read twice, beside a draw, which is none."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        torch.rand_like(self.shift)
        factor = torch.softmax(self.scale * self.shift, 0)
        return x * factor + (factor - self.shift.abs())


DEAD = [
    tidied(
        "h = torch.relu(x); (h + 1).exp(); return h * 2",
        _dead,
        2,
        WrongTurn("exp is gone, but now nobody reads the sum: go from the back.", calls=3),
    ),
    tidied("torch.sigmoid(x).sum(0); return x - torch.tanh(x).mul(2)", _dead_twice, 3),
]
KEPT = tidied(
    "h = torch.relu(x); h.add_(1); torch.tanh(h); return h",
    _kept,
    2,
    WrongTurn(
        "a node that writes was erased because nobody reads its result. Others read what it writes to: keep it.",
        computes=torch.relu,
    ),
    counts={"add_": 1},
)
MOVES = "A draw that is not read still moves the generator."
DRAWN = tidied(
    "F.dropout(x, 0.5, True); torch.exp(x); return x - 3",
    _drawn,
    2,
    counts={"torch.nn.functional.dropout": 1},
    reason=MOVES,
)
CONSTANTS = [
    tidied(
        "x * (self.scale.exp() + 1)",
        Folded,
        1,
        WrongTurn("only the first step was folded: what it gives is constant, too.", calls=2),
    ),
    tidied(  # drawn from a buffer, so that a trace that computes with buffers loses the draw
        "torch.rand_like(self.shift); f = torch.softmax(self.scale * self.shift, 0); x * f + (f - self.shift.abs())",
        FoldedTwice,
        3,
        counts={"torch.rand_like": 1},
        reason=MOVES,
    ),
]


class Trained(Buffers):
    """A parameter that is read alone, and a constant."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        return x * (self.weight - 1) + self.shift.neg()


class Changed(Buffers):
    """What a buffer gives, written to afterwards, and a constant."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        c = self.scale.sin()
        c.mul_(2)
        return x * c + self.shift.neg()


class Exceeded(Buffers):
    """A result that is false for all but large numbers, and a constant."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (rows, 8) to (rows, 8)."""
        return x + (x > 40) * self.scale - self.shift.neg()


SELDOM = "What reads x is not a constant, also where its result is the same for most numbers."
TRAINED = "Training will change self.weight: what is computed from a parameter is not a constant."
NO_CONSTANT = "What somebody writes to, itself or through a view of it, is not a constant."
NO_CONSTANTS = [
    tidied("x * (self.weight - 1) + self.shift.neg()", Trained, 3, reason=TRAINED, warning=TRAINED),
    tidied("c = self.scale.sin(); c.mul_(2); return x * c + self.shift.neg()", Changed, 4, warning=NO_CONSTANT),
    tidied("x + (x > 40) * self.scale - self.shift.neg()", Exceeded, 4, reason=SELDOM, others=LARGE),
]

EXERCISE = Exercise(
    title="Dead code and constants",
    kind=Kind.GRAPH,
    entry_point="clean_up",
    points=8,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends", *PASSES_OF_TORCH),
    wall_s=30,
    hints=(
        "Go forward to find constants, since each step needs those before it; go backward to erase, since a node may "
        "go only when its readers are gone.",
        "Keep a dict from constant nodes to tensors. It starts with the buffers that nobody writes to; a call joins it "
        "when all nodes it reads are in it. `graph.eliminate_dead_code` can be told what to keep.",
        "`fx.map_arg(node.args, known.__getitem__)` puts tensors in the place of nodes; `register_buffer` and "
        "`graph.get_attr` bring the result into the graph; `is_impure_node` is the keyword that keeps nodes.",
    ),
    checks=(
        Check("what nobody reads goes, link by link", "dead code", 1.5, rewritten(DEAD, continued=True)),
        Check("what writes stays, and what draws", "side effects", 1, rewritten([KEPT, DRAWN], continued=True)),
        Check("calls on buffers are computed beforehand", "constants", 1.5, rewritten(CONSTANTS, continued=True)),
        Check(
            "what training, a write or an input changes is not a constant",
            "refusals",
            0.5,
            rewritten(NO_CONSTANTS, together=True, continued=True),
        ),
    ),
)
