"""Hidden checks and controls of exercise 05.3."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.common_subexpressions import LARGE, LIMITS, WHOLE, shared
from autograder.exercises.hidden.answer_files import NO_OPERATORS, Answers
from autograder.host.checks.rewrite_checks import rewritten
from autograder.host.exercise import Check, HiddenPart


def _deep(x: Tensor, y: Tensor) -> Tensor:
    a = torch.permute(torch.stack([x, y]), (1, 0, 2)) + torch.permute(torch.stack([x, y]), (1, 0, 2))
    return a.sum((0, 1)) - a.sum((0, 1)) * a.mean((0, 1))


ARGUMENTS = [
    shared(
        "torch.add(x, y, alpha=2) * torch.add(x, y, alpha=3) - torch.add(x, y, alpha=2)",
        lambda x, y: torch.add(x, y, alpha=2) * torch.add(x, y, alpha=3) - torch.add(x, y, alpha=2),
        4,
    ),
    shared(
        "(torch.cat([x, y], 1) - torch.cat([x, y], 1)) * torch.cat([y, x], 1)",
        lambda x, y: (torch.cat([x, y], 1) - torch.cat([x, y], 1)) * torch.cat([y, x], 1),
        4,
    ),
    shared(
        "x[:, 1:3] * x[:, 1:3] + y[:, 1:3] - x[:, 2:4]", lambda x, y: x[:, 1:3] * x[:, 1:3] + y[:, 1:3] - x[:, 2:4], 6
    ),
    shared("(x - y) * (y - x) + (x - y)", lambda x, y: (x - y) * (y - x) + (x - y), 4),
    shared("torch.sin(x) * torch.cos(x) + torch.sin(x)", lambda x, y: torch.sin(x) * torch.cos(x) + torch.sin(x), 4),
    shared("stack, permute and sum over two dimensions, twice", _deep, 7),
    shared(
        "torch.clamp(x, min=-1, max=1) * torch.clamp(x, max=1, min=-1)",
        lambda x, y: torch.clamp(x, min=-1, max=1) * torch.clamp(x, max=1, min=-1),
        2,
    ),
]

NUMBERS = [
    shared(
        "x * 1, x * 1.0, x * True, y * 2 + y * 2",
        lambda x, y: (x * 1, x * 1.0, x * True, y * 2 + y * 2),
        5,
        warning="1, 1.0 and True are equal for Python, and give tensors of different dtypes.",
        inputs=WHOLE,
    ),
    shared(
        "torch.clamp(x, max=2), torch.clamp(x, max=2.0), torch.sin(y) + torch.sin(y)",
        lambda x, y: (torch.clamp(x, max=2), torch.clamp(x, max=2.0), torch.sin(y) + torch.sin(y)),
        4,
        warning="2 and 2.0 are equal for Python, and give tensors of different dtypes.",
        inputs=WHOLE,
    ),
    shared(
        "x.masked_fill(x == 0.375, 1.0) - x.masked_fill(x == 0.375, 2.0) + torch.sin(y) * torch.sin(y)",
        lambda x, y: x.masked_fill(x == 0.375, 1.0) - x.masked_fill(x == 0.375, 2.0) + torch.sin(y) * torch.sin(y),
        7,
        reason=LIMITS,
    ),
    shared(
        "torch.clamp(x, -50, 50) * torch.sin(y), torch.clamp(x, -60, 50) * torch.sin(y)",
        lambda x, y: (torch.clamp(x, -50, 50) * torch.sin(y), torch.clamp(x, -60, 50) * torch.sin(y)),
        5,
        reason=LIMITS,
        others=LARGE,
    ),
]


class _Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.other = nn.Parameter(torch.zeros(6)), nn.Parameter(torch.zeros(6))

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return x * self.weight - torch.exp(x * self.weight) + y * self.other


class _Layers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.first(x) * self.second(x) + torch.exp(y) * torch.exp(y)


MODULES = [
    shared("x * self.weight - torch.exp(x * self.weight) + y * self.other", _Weighted, 5),
    shared("self.first(x) * self.second(x) + torch.exp(y) * torch.exp(y)", _Layers, 6),
]


def _result_written(x: Tensor, y: Tensor) -> Tensor:
    a = x + 1
    b = x + 1
    a.mul_(y)
    return a - b + torch.exp(y) * torch.exp(y)


def _view_written(x: Tensor, y: Tensor) -> Tensor:
    a = torch.exp(x)
    b = torch.exp(x)
    b.view(-1).mul_(2)
    return a - b + torch.sin(y) * torch.sin(y)


def _input_written(x: Tensor, y: Tensor) -> Tensor:
    before = torch.exp(x)
    F.relu(x, inplace=True)
    return torch.exp(x) - before + torch.sin(y) * torch.sin(y)


def _two_writes(x: Tensor, y: Tensor) -> Tensor:
    h = torch.exp(x)
    h.add_(1)
    h.add_(1)
    return h - torch.sin(y) * torch.sin(y)


def _equal_before_and_after(x: Tensor, y: Tensor) -> Tensor:
    a = torch.exp(x) * torch.exp(x)
    x.neg_()
    return a + torch.exp(x) * torch.exp(x)


class _DrawnTwice(nn.Module):
    """Two calls of one dropout module."""

    def __init__(self) -> None:
        super().__init__()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.drop(x) - self.drop(x)) * 0 + torch.sin(y) * torch.sin(y)


def _limited(x: Tensor, y: Tensor) -> Tensor:
    before = torch.sin(x)
    x.clamp_(max=50)
    return torch.sin(x) - before + torch.exp(y) * torch.exp(y)


BETWEEN = "Two calls became one, but something writes between them to what they read."
LATER = "Two results became one tensor, and the program writes to one of them later, itself or through a view."
ONE_DRAW = "Two dropouts became one: each draws a mask of its own."


def _several_before(x: Tensor, y: Tensor) -> Tensor:
    a, b = torch.exp(x), torch.sin(x)
    x.neg_()
    return a * b + torch.exp(x) * torch.sin(x) + torch.sin(y) * torch.sin(y)


WRITES = [
    shared(
        "a, b = exp(x), sin(x); x.neg_(); a * b + exp(x) * sin(x) + sin(y) * sin(y)",
        _several_before,
        11,
        warning=BETWEEN,
    ),
    shared("a = x + 1; b = x + 1; a.mul_(y); a - b + torch.exp(y) * torch.exp(y)", _result_written, 7, warning=LATER),
    shared("a, b = exp(x), exp(x); b.view(-1).mul_(2); a - b + sin(y) * sin(y)", _view_written, 8, warning=LATER),
    shared("e = exp(x); F.relu(x, inplace=True); exp(x) - e + sin(y) * sin(y)", _input_written, 7, warning=BETWEEN),
    shared(
        "h = exp(x); h.add_(1); h.add_(1); h - sin(y) * sin(y)",
        _two_writes,
        6,
        warning="Two equal writes became one: each of them changes h.",
    ),
    shared("a = sin(x); x.clamp_(max=50); sin(x) - a + exp(y) * exp(y)", _limited, 7, warning=BETWEEN, others=LARGE),
    shared("a = exp(x) * exp(x); x.neg_(); a + exp(x) * exp(x)", _equal_before_and_after, 6, warning=BETWEEN),
    shared(
        "(dropout(x) - dropout(x)) * 0 + sin(y) * sin(y)",
        lambda x, y: (F.dropout(x, 0.5, True) - F.dropout(x, 0.5, True)) * 0 + torch.sin(y) * torch.sin(y),
        7,
        counts={"torch.nn.functional.dropout": 2},
        reason=ONE_DRAW,
    ),
    shared(
        "(self.drop(x) - self.drop(x)) * 0 + sin(y) * sin(y), in training",
        _DrawnTwice,
        7,
        counts={"torch.nn.Dropout": 2},
        reason=ONE_DRAW,
        training=True,
    ),
]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("arguments of every form", "arguments", 1, rewritten(ARGUMENTS)),
        Check("numbers that are equal and differ", "look-alikes", 1, rewritten(NUMBERS, together=True)),
        Check("parameters and layers", "modules", 0.5, rewritten(MODULES)),
        Check("writes and draws of other kinds", "writes", 1, rewritten(WRITES, together=True)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.joined(
            "merges equal values", 4.8, ANSWERS.of_lesson("by_values"), ANSWERS.text_of("merges equal values")
        ),
        ANSWERS.file("compares texts", 5, below=True),
        ANSWERS.edited("as equal as for Python", 4.8, ("return (type(value), value)", "return value")),
    ),
    right_here=NO_OPERATORS,
    equivalent={
        "graph_module.recompile() -> pass": "nodes cross to the host, not generated code",
        "node in calls and writes(node) -> writes(node)": "no other node has such a target",
    },
)
