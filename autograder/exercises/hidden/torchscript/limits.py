"""Hidden checks and controls of exercise 03.6.

The programs here are none of those in the visible checks, so messages known by heart are no help.
"""

import functools
from collections.abc import Callable, Iterator

import torch
from torch import nn

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.torchscript import limits as visible
from autograder.exercises.torchscript.limits import Snippet, count_call
from autograder.host.exercise import Check, Control, HiddenPart


def two_branches(x: torch.Tensor) -> torch.Tensor:
    """Ask twice, with a tracer's warning for each."""
    count_call()
    x = x + 1 if x.min() >= 0 else x * 3
    return x if x.mean() > 0 else -x


def two_numbers(x: torch.Tensor) -> torch.Tensor:
    """Take a whole number and another one out of tensors."""
    count_call()
    return x * int(x.abs().sum() * 10) + float(x.mean())


class WeightedMean(nn.Module):
    """A mean in training only, and a parameter."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([2.0, 3.0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Centre in training only."""
        count_call()
        return (x - x.mean()) * self.weight if self.training else x * self.weight


class Remembers(nn.Module):
    """Keep what was seen in a list of Python."""

    def __init__(self) -> None:
        super().__init__()
        self.means: list[torch.Tensor] = []

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the sigmoid, and note the mean."""
        count_call()
        self.means = [*self.means, x.detach().mean()][-3:]
        return torch.sigmoid(x)


def with_lambda(x: torch.Tensor) -> torch.Tensor:
    """Use a function without a name."""
    return max((x, x * 2), key=lambda y: float(y.sum()))


def assigned_inside(x: torch.Tensor) -> torch.Tensor:
    """Assign inside a condition."""
    if (total := x.sum()) > 0:
        return total
    return x


def matched(x: torch.Tensor) -> torch.Tensor:
    """Match a number of dimensions."""
    match x.dim():
        case 2:
            return x * 2
    return x


def imports_inside(x: torch.Tensor) -> torch.Tensor:
    """Import inside a function."""
    import math

    return x * math.pi


def class_inside(x: torch.Tensor) -> torch.Tensor:
    """Define a class inside a function."""

    class Pair:
        pass

    return x * len(Pair.__name__)


def yields(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """Give several results, one after the other."""
    yield x
    yield x * 2


def number_for_a_tensor(x: torch.Tensor) -> torch.Tensor:
    """Append a number to an empty list, of which the compiler thinks that it holds tensors."""
    sizes = []
    sizes.append(len(x))
    return x * sum(sizes)


def list_of_floats(x: torch.Tensor) -> torch.Tensor:
    """Append a factor to an empty list."""
    factors = []
    factors.append(0.5)
    return x * factors[0]


def first_none(x: torch.Tensor) -> torch.Tensor:
    """Begin with None, and go on with a tensor."""
    best = None
    if x.sum() > 0:
        best = x
    return x if best is None else best


def table_of_numbers(x: torch.Tensor) -> torch.Tensor:
    """Put a number into an empty dict."""
    sizes = {}
    sizes["rows"] = 2
    return x * sizes["rows"]


def in_the_language(x: torch.Tensor) -> torch.Tensor:
    """Use a loop, a typed list and a branch."""
    sizes: list[int] = []
    for i in range(3):
        sizes.append(i)
    return x * len(sizes) if x.sum() > 0 else x


def _same(program: Callable[..., object]) -> Callable[..., object]:
    return program


def _snippets(limit: str, capture: str, *programs: Callable[..., object]) -> tuple[Snippet, ...]:
    return tuple(Snippet(functools.partial(_same, each), capture, limit) for each in programs)


OUTSIDE = (with_lambda, assigned_inside, matched, imports_inside, class_inside, yields)
UNKNOWN = (number_for_a_tensor, list_of_floats, first_none, table_of_numbers)
SILENT = (
    Snippet(WeightedMean, "trace", "frozen mode"),
    Snippet(Remembers, "trace", "lost effect"),
)
SCRIPTS = (
    *_snippets("outside the language", "script", *OUTSIDE),
    *_snippets("unknown type", "script", *UNKNOWN),
    *_snippets("none", "script", in_the_language),
)
EVERY = (
    *_snippets("frozen branch", "trace", two_branches),
    *_snippets("frozen number", "trace", two_numbers),
    *SILENT,
    *SCRIPTS,
)

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("other traces without a warning", "silence", 1, visible.told_apart(SILENT)),
        Check("everything together, with other programs", "everything", 0.5, visible.told_apart(EVERY)),
    ),
    controls=(
        ANSWERS.reference(4),
        ANSWERS.edited(
            "silence is gold",
            2,
            ("'frozen mode'", "'none'"),
            ("'lost effect' if seen['calls_seen'] == 0 else ", ""),
        ),
        ANSWERS.edited(
            "errors by their type",
            4,
            ("'upported' in seen['error']", "seen['error'].startswith(('UnsupportedNodeError', 'NotSupportedError'))"),
        ),
        ANSWERS.edited(
            "constructs by heart",
            3.5,
            (
                "'upported'",
                "any(w in seen['error'] for w in ('function def', 'SetComp', 'try blocks', 'variable number'))",
            ),
            (" in seen['error'] else", " else"),
        ),
        Control("always none", "def which_limit(seen):\n    return 'none'\n", 0),
    ),
    right_here={"text": "a name is a text already"},
)
