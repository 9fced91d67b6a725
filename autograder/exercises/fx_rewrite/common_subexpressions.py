"""Exercise 05.3: compute equal expressions only once."""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.exercises.programs.library_passes import PASSES_OF_TORCH
from autograder.host.checks.rewrite_checks import Rewriting, WrongTurn, rewritten
from autograder.host.exercise import Check, Exercise, Kind
from autograder.host.traced import Program, TensorSpec

ROWS, OTHER = TensorSpec((4, 6)), TensorSpec((4, 6))
LARGE = ((TensorSpec((4, 6), scale=100.0), OTHER),)
"""Numbers so large that what limits them shows; no pass sees them."""


LEFT = (
    "Equal calls are left: compare target and arguments, keywords in any order, and lists, slices and dicts by their "
    "contents."
)


def shared(
    name: str,
    program: Callable[..., object] | type[nn.Module],
    calls: int,
    *turns: WrongTurn,
    counts: Mapping[str, int] | None = None,
    reason: str = "",
    inputs: Sequence[TensorSpec] = (ROWS, OTHER),
    at_least: int | None = None,
    training: bool = False,
    warning: str = "",
    others: tuple[tuple[TensorSpec, ...], ...] = (),
) -> Rewriting:
    """Return a program of x and y, both (4, 6), and its number of calls after the pass; `counts` is of draws."""
    build = program if isinstance(program, type) else lambda: program
    return Rewriting(
        Program(f"`{name}`", build, tuple(inputs), 0, others, reason=reason, buffers=True, training=training),
        calls,
        counts or {},
        at_least=at_least,
        wrong_turns=turns,
        warning=warning,
        left=LEFT,
        effects=True,
    )


EQUAL = [
    shared("torch.exp(x + y) * torch.sigmoid(x + y)", lambda x, y: torch.exp(x + y) * torch.sigmoid(x + y), 4),
    shared(
        "x.sum(1, keepdim=True) - x.sum(1, keepdim=True) * y",
        lambda x, y: x.sum(1, keepdim=True) - x.sum(1, keepdim=True) * y,
        3,
    ),
]
READERS = shared(
    "F.relu(torch.exp(x) * y) + torch.exp(x) * y",
    lambda x, y: F.relu(torch.exp(x) * y) + torch.exp(x) * y,
    4,
    WrongTurn(
        "exp is shared, the products that read it are not: compare arguments after the readers of earlier nodes were "
        "redirected.",
        calls=5,
    ),
)
DRAWS = shared(  # two draws differ in some element, so the sign of their largest difference is 1
    "(torch.rand_like(x) - torch.rand_like(x)).abs().amax().sign() + torch.tanh(y) * torch.tanh(y)",
    lambda x, y: (torch.rand_like(x) - torch.rand_like(x)).abs().amax().sign() + torch.tanh(y) * torch.tanh(y),
    9,
    WrongTurn(
        "two draws of random numbers became one: they are equal in text only.",
        computes=lambda x, y: torch.tanh(y) * torch.tanh(y),
    ),
    counts={"torch.rand_like": 2, "torch.tanh": 1},
)


def _written(x: Tensor, y: Tensor) -> Tensor:
    h = x * 1
    first = torch.exp(h)
    h.add_(y)
    return torch.exp(h) - first + torch.tanh(y) * torch.tanh(y)


WRITES = shared(
    "h = x * 1; e = torch.exp(h); h.add_(y); torch.exp(h) - e + torch.tanh(y) * torch.tanh(y)",
    _written,
    8,
    WrongTurn(
        "the two exponentials became one, but h is written to between them.",
        computes=lambda x, y: torch.tanh(y) * torch.tanh(y) + 0 * x,
    ),
)
WHOLE = (TensorSpec((4, 6), torch.int64), TensorSpec((4, 6), torch.int64))
NUMBERS = shared(
    "x - 1, x - 1.0, y * 3 + y * 3",
    lambda x, y: (x - 1, x - 1.0, y * 3 + y * 3),
    4,
    warning="1 and 1.0 are equal for Python, and give tensors of different dtypes.",
    inputs=WHOLE,
)
LIMITS = "Two calls with other numbers became one: their results are equal for small numbers only."
LIMITED = shared(
    "x.clamp(max=40), x.clamp(max=41), y * 3 + y * 3",
    lambda x, y: (x.clamp(max=40), x.clamp(max=41), y * 3 + y * 3),
    4,
    reason=LIMITS,
    others=LARGE,
)

EXERCISE = Exercise(
    title="Compute what is equal once",
    kind=Kind.GRAPH,
    entry_point="share_equal",
    points=8,
    masked=("course_lib.fusion", "course_lib.schedule", "course_lib.backends", *PASSES_OF_TORCH),
    wall_s=30,
    hints=(
        "Two calls are equal when operation, target and all arguments are. Which nodes give something else each time, "
        "and which change what others read?",
        "Keep a dict from (op, target, arguments) to the first node that has them; send the readers of a second one to "
        "it. Lists, slices and dicts among the arguments have to become tuples first.",
        "`freeze(value)` makes `tuple(map(freeze, value))` of a list, and `(type(value), value)` of a number; at a "
        "write, clear the dict; never share a node that is written to later.",
    ),
    checks=(
        Check("equal calls become one", "equal calls", 1.5, rewritten(EQUAL, continued=True)),
        Check("and then those that read them", "equal calls", 1.5, rewritten([READERS], continued=True)),
        Check("two draws stay two", "random numbers", 0.5, rewritten([DRAWS], continued=True)),
        Check("a write between two calls keeps them apart", "writes", 0.5, rewritten([WRITES], continued=True)),
        Check(
            "two numbers stay two, also where Python, or a result, takes them for equal",
            "look-alikes",
            0.5,
            rewritten([NUMBERS, LIMITED], together=True),
        ),
    ),
)
