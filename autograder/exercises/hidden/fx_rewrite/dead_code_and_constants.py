"""Hidden checks and controls of exercise 05.2."""

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.fx_rewrite.dead_code_and_constants import (
    LARGE,
    MOVES,
    NO_CONSTANT,
    SELDOM,
    TRAINED,
    Buffers,
    tidied,
)
from autograder.exercises.hidden.answer_files import NO_OPERATORS, Answers
from autograder.host.checks.rewrite_checks import rewritten
from autograder.host.exercise import Check, HiddenPart


def _through_a_view(x: Tensor) -> Tensor:
    h = x * 1.5
    h.view(-1).mul_(2)
    h.sum(0)
    return h


def _copied(x: Tensor) -> Tensor:
    h = torch.zeros_like(x)
    h.copy_(x)
    torch.exp(h)
    return h + 1


def _by_keyword(x: Tensor) -> Tensor:
    h = x - 1
    F.relu(h, inplace=True)
    h.abs()
    return h


def _into_the_input(x: Tensor) -> Tensor:
    x.neg_()
    x.tanh()
    return x + 1


ERASED = "A call that writes was erased because nobody reads its result. Others read what it writes to."
RELU = "torch.nn.functional.relu"
WRITES = [
    tidied(
        "h = x * 1.5; h.view(-1).mul_(2); h.sum(0); return h", _through_a_view, 3, counts={"mul_": 1}, warning=ERASED
    ),
    tidied(
        "h = torch.zeros_like(x); h.copy_(x); torch.exp(h); return h + 1",
        _copied,
        3,
        counts={"copy_": 1},
        warning=ERASED,
    ),
    tidied("h = x - 1; F.relu(h, inplace=True); h.abs(); return h", _by_keyword, 2, counts={RELU: 1}, warning=ERASED),
    tidied("x.neg_(); x.tanh(); return x + 1", _into_the_input, 2, counts={"neg_": 1}, warning=ERASED),
]


class _Random(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        torch.rand_like(self.shift)
        torch.exp(x)
        return x * self.scale.exp() + torch.rand_like(self.scale) * 0


def _dropped_out(x: Tensor) -> Tensor:
    F.dropout(x, 0.5, True).exp()
    return x * 3


RANDOM = [
    tidied(
        "torch.rand_like(self.shift); torch.exp(x); return x * self.scale.exp() + torch.rand_like(self.scale) * 0",
        _Random,
        5,
        counts={"torch.rand_like": 2},
        reason="A draw that is not read still moves the generator, and a number that is drawn is not a constant.",
    ),
    tidied(
        "F.dropout(x, 0.5, True).exp(); return x * 3",
        _dropped_out,
        2,
        counts={"torch.nn.functional.dropout": 1},
        reason=MOVES,
    ),
]


class _Parameter(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        return x * (self.weight * 2) + (self.shift * 2)


class _OfParameterAndBuffer(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        return x + self.weight * self.scale.neg()


PARAMETERS = [
    tidied("x * (self.weight * 2) + (self.shift * 2)", _Parameter, 3, reason=TRAINED, warning=TRAINED),
    tidied("x + self.weight * self.scale.neg()", _OfParameterAndBuffer, 2, reason=TRAINED, warning=TRAINED),
]


class _Written(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        c = self.scale * 2
        c.add_(1)
        return x * c + self.shift.exp()


class _WrittenThroughAView(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        c = self.scale + 1
        c.view(2, 4).mul_(2)
        return x * c - self.shift.exp()


class _BufferWritten(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        self.shift.mul_(0).add_(x[0].detach())
        return x * (self.shift + 1) + self.scale.exp()


class _Limited(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        return x * (x.clamp(-60, 60) == x) + self.scale.exp()


class _OneNumber(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        return x + (x == 0.375) * self.shift - self.scale.exp()


class _ReadsBuffer(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        x.add_(self.scale.exp())
        return x * 2


CHANGING = [
    tidied("c = self.scale * 2; c.add_(1); return x * c + self.shift.exp()", _Written, 4, warning=NO_CONSTANT),
    tidied(
        "c = self.scale + 1; c.view(2, 4).mul_(2); return x * c - self.shift.exp()",
        _WrittenThroughAView,
        5,
        warning=NO_CONSTANT,
    ),
    tidied(
        "self.shift.mul_(0).add_(x[0].detach()); return x * (self.shift + 1) + self.scale.exp()",
        _BufferWritten,
        7,
        warning=NO_CONSTANT,
    ),
    tidied("x * (x.clamp(-60, 60) == x) + self.scale.exp()", _Limited, 4, reason=SELDOM, others=LARGE),
    tidied("x + (x == 0.375) * self.shift - self.scale.exp()", _OneNumber, 4, reason=SELDOM),
    tidied("x.add_(self.scale.exp()); return x * 2", _ReadsBuffer, 2),
]


class _Made(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        torch.rand_like(self.shift)
        steps = torch.ones_like(self.scale).cumsum(0)
        return x + steps * torch.stack([self.scale, self.shift], dim=0)[1]


class _KeywordsToo(Buffers):
    def forward(self, x: Tensor) -> Tensor:
        torch.randn_like(self.scale)
        return torch.clamp(x, max=torch.add(input=self.scale, other=self.shift, alpha=3))


FORMS = [
    tidied(
        "torch.rand_like(self.shift); "
        "x + torch.ones_like(self.scale).cumsum(0) * torch.stack([self.scale, self.shift], dim=0)[1]",
        _Made,
        2,
        counts={"torch.rand_like": 1},
        reason=MOVES,
    ),
    tidied(
        "torch.randn_like(self.scale); torch.clamp(x, max=torch.add(input=self.scale, other=self.shift, alpha=3))",
        _KeywordsToo,
        2,
        counts={"torch.randn_like": 1},
        reason=MOVES,
    ),
]


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("writes of other kinds", "side effects", 0.5, rewritten(WRITES, together=True)),
        Check("random numbers", "side effects", 0.5, rewritten(RANDOM, together=True)),
        Check("parameters are not constants", "refusals", 0.5, rewritten(PARAMETERS, together=True)),
        Check(
            "what is written to, or reads an input, is not a constant",
            "refusals",
            0.5,
            rewritten(CHANGING, together=True),
        ),
        Check("constants in other forms", "constants", 1.5, rewritten(FORMS)),
    ),
    controls=(
        ANSWERS.reference(8),
        ANSWERS.file("torch's own dead code elimination", 1.5),
        ANSWERS.file("constants by their values", 4.8),
        ANSWERS.file("traced again with buffers", 4.25),
        ANSWERS.edited("parameters are constants, too", 4.8, ("if not isinstance(tensor, nn.Parameter):", "if True:")),
    ),
    right_here=NO_OPERATORS,
    equivalent={
        "graph_module.recompile() -> pass": "nodes cross to the host, not generated code",
        "'placeholder' -> 'placeholder_'": "torch.fx keeps placeholders in any case",
        "('placeholder', 'output') -> ('output',)": "torch.fx keeps placeholders in any case",
    },
)
