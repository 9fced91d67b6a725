"""Sixty small programs, each with the expected verdict on each capture mode and of `verify` on its torch.fx graph.

The verdicts were recorded from a run. Then all 540 were written down a second time, from the programs, the code of
`compare_modes` and experiments with PyTorch alone, without the recorded ones in view. 7 differed; further experiments
confirmed 6 recorded ones. The seventh, of `verify` on `runs_backward`, was a limit of `fuse` that is gone.

One letter a mode, in the order of `MODES`: `c` captured, `r` refused, `p` refuses a probe, `w` silently wrong, `y` ran
as Python. The ninth letter is that of `verify`, which compares no variables, counters or printed text: `s` the graph
is the same, `d` it differs, `-` there is no graph.
"""

import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LOG: list[int] = []
NUMBER = 0
STATE = SimpleNamespace(calls=0)
CACHE: dict[str, Tensor] = {}
WEIGHT = nn.Linear(4, 4)


class Part(nn.Module):
    """A linear layer, a buffer and a counter, for a function of them and the input."""

    total = 0

    def __init__(self, run: Callable[["Part", Tensor], Any]) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)
        self.register_buffer("mean", torch.zeros(4))
        self.calls = 0
        self.run = run

    def forward(self, x: Tensor) -> Any:
        return self.run(self, x)


class StraightThrough(torch.autograd.Function):
    """Round, and hand gradients on three times as large."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.round()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient * 3


def scales(x: Tensor) -> Tensor:
    return x * 2 + 1


def activates(x: Tensor) -> Tensor:
    return F.gelu(x) * torch.sigmoid(x)


def multiplies(x: Tensor) -> Tensor:
    return torch.matmul(x, x.transpose(0, 1))


def normalises(x: Tensor) -> Tensor:
    return F.layer_norm(x, [4]) * 3


def reduces(x: Tensor) -> Tensor:
    return x.exp().sum(dim=1).log()


def compares(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, -x * 0.5)


def splits(x: Tensor) -> tuple[Tensor, Tensor]:
    a, b = torch.tanh(x * 1).chunk(2, dim=1)
    return a * 2, b + 1


def makes_a_tensor(x: Tensor) -> Tensor:
    return x + torch.ones(4)


def small_numbers(x: Tensor) -> Tensor:
    return x * 1e-7 if x.sum() > 0 else x * -1e-7


def small_double(x: Tensor) -> Tensor:
    return x.double() * 1e-11 if x.sum() > 0 else x.double() * 1.0001e-11


def branch(x: Tensor) -> Tensor:
    return x * 2 if x.sum() > 0 else x - 1


def branch_on_rows(x: Tensor) -> Tensor:
    return x * 2 if x.shape[0] > 3 else x - 1


def divides_by_rows(x: Tensor) -> Tensor:
    return x.sum(0) / x.shape[0]


def item(x: Tensor) -> Tensor:
    return x * float(x.sum())


def transposes(x: Tensor) -> Tensor:
    return (x * 2).t()


def returns_a_view(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    return y, y.view(-1)


def returns_twice(x: Tensor) -> tuple[Tensor, Tensor]:
    y = x * 2
    return y, y


def returns_its_input(x: Tensor) -> Tensor:
    return x


def slices_its_input(x: Tensor) -> Tensor:
    return x[1:]


def contiguous_input(x: Tensor) -> Tensor:
    return x.contiguous()


def writes_its_input(x: Tensor) -> Tensor:
    return x.add_(1) * 2


def adds_in_place(x: Tensor) -> Tensor:
    x += 1
    return x * 2


def writes_data(x: Tensor) -> Tensor:
    x.data = x.data + 1
    return x * 2


def draws(x: Tensor) -> Tensor:
    return x + torch.rand(3, 4)


def draws_like(x: Tensor) -> Tensor:
    return x + torch.rand_like(x)


def draws_unused(x: Tensor) -> Tensor:
    torch.rand(3)
    return x * 2


def draws_with_python(x: Tensor) -> Tensor:
    return x * random.random()


def drops(x: Tensor) -> Tensor:
    return F.dropout(x, 0.5, True) * 2


def detaches(x: Tensor) -> Tensor:
    return x.detach() * x


def asks_for_gradients(x: Tensor) -> Tensor:
    x.requires_grad_()
    return x * 2


def straight_through(x: Tensor) -> Tensor:
    return StraightThrough.apply(x) * 2


def hooks_a_tensor(x: Tensor) -> Tensor:
    y = x * 2
    if y.requires_grad:
        y.register_hook(lambda gradient: gradient * 5)
    return y * 3


def logs(x: Tensor) -> Tensor:
    LOG.append(1)
    return x * len(LOG)


def only_logs(x: Tensor) -> Tensor:
    LOG.append(1)
    return x * 2


def counts(x: Tensor) -> Tensor:
    global NUMBER
    NUMBER += 1
    return x * 2


def counts_in_a_namespace(x: Tensor) -> Tensor:
    STATE.calls += 1
    return x * 2


def keeps_in_a_cache(x: Tensor) -> Tensor:
    if "scale" not in CACHE:
        CACHE["scale"] = torch.ones(4) * 2
    return x * CACHE["scale"]


def uses_a_global_layer(x: Tensor) -> Tensor:
    return WEIGHT(x) * 2


def prints(x: Tensor) -> Tensor:
    print("called")
    return x * 2


def goes_through_numpy(x: Tensor) -> Tensor:
    return torch.from_numpy(x.detach().numpy() * 2)


def without_recording(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 3
    return y * x


def as_bfloat16(x: Tensor) -> Tensor:
    with torch.autocast("cpu", torch.bfloat16):
        return x @ x.t()


def sums_to_a_number(x: Tensor) -> float:
    return float(x.sum())


def adds_what_is_yielded(x: Tensor) -> Tensor:
    def each() -> Iterator[Tensor]:
        yield x * 2
        yield x * 3

    return sum(each(), start=x)


def sorts(x: Tensor) -> tuple[Tensor, Tensor]:
    found = torch.sort(x * 3, dim=1)
    return found[0], found[1]


def expands(x: Tensor) -> Tensor:
    return (x[:1] * 2).expand(3, 4)


def no_grad_layer(self: Part, x: Tensor) -> Tensor:
    with torch.no_grad():
        h = self.linear(x)
    return h * x


def switched_off(self: Part, x: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    h = self.linear(x)
    torch.set_grad_enabled(True)
    return h * 2 + x


def frozen_weight(self: Part, x: Tensor) -> Tensor:
    return F.linear(x, self.linear.weight.detach(), self.linear.bias)


def hooked(self: Part, x: Tensor) -> Tensor:
    h = self.linear(x)
    if h.requires_grad:
        h.register_hook(lambda gradient: gradient * 2)
    return h * 2


def counts_calls(self: Part, x: Tensor) -> Tensor:
    self.calls += 1
    return self.linear(x)


def class_counter(self: Part, x: Tensor) -> Tensor:
    Part.total += 1
    return self.linear(x)


def moves_a_mean(self: Part, x: Tensor) -> Tensor:
    self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
    return self.linear(x) - self.mean


def replaces_a_buffer(self: Part, x: Tensor) -> Tensor:
    self.mean = self.mean * 0.9 + x.detach().mean(0) * 0.1
    return self.linear(x)


def adds_to_a_buffer(self: Part, x: Tensor) -> Tensor:
    self.mean.add_(1)
    return self.linear(x) + self.mean


def trains_a_norm(self: Part, x: Tensor) -> Tensor:
    return self.norm(self.linear(x))


def decides_by_training(self: Part, x: Tensor) -> Tensor:
    return self.linear(x) * (2 if self.training else 1)


def runs_backward(self: Part, x: Tensor) -> Tensor:
    loss = self.linear(x).pow(2).mean()
    loss.backward()
    return loss.detach()


def returns_a_parameter(self: Part, x: Tensor) -> tuple[Tensor, Tensor]:
    return self.linear(x), self.linear.weight


def reads_bias(self: Part, x: Tensor) -> Tensor:
    return x @ self.linear.weight.t() + self.linear.bias


VERDICTS: dict[Callable[..., Any], str] = {
    scales: "ccccccccs",
    activates: "ccccccccs",
    multiplies: "ccccccccs",
    normalises: "ccccccccs",
    reduces: "ccccccccs",
    compares: "ccccccccs",
    splits: "cccccccrs",
    makes_a_tensor: "cccccccrs",
    small_numbers: "wcrrcrrc-",
    small_double: "wcrrcrrc-",
    branch: "wcrrcrrc-",
    branch_on_rows: "wcrwcpwc-",
    divides_by_rows: "cccwcpwcs",
    item: "wcrrcrrc-",
    transposes: "cccccccws",
    returns_a_view: "cccccccws",
    returns_twice: "cccccccws",
    returns_its_input: "ccccyccws",
    slices_its_input: "cccccccws",
    contiguous_input: "cccccccws",
    writes_its_input: "ccccccccs",
    adds_in_place: "ccwcccccd",
    writes_data: "wrwwcrwcd",
    draws: "ccwccccrd",
    draws_like: "ccccccccs",
    draws_unused: "wwwcccccd",
    draws_with_python: "wrwwcwwcd",
    drops: "cccccccws",
    detaches: "ccccccccs",
    asks_for_gradients: "wccwcwwws",
    straight_through: "ccwwcwccd",
    hooks_a_tensor: "wrrwcwcc-",
    logs: "wrwwcwwcd",
    only_logs: "wrwwcwwcs",
    counts: "wrwwcwwcs",
    counts_in_a_namespace: "wrwwcwwcs",
    keeps_in_a_cache: "wrwwcwrrs",
    uses_a_global_layer: "rcrccwrr-",
    prints: "wcwwcwwcs",
    goes_through_numpy: "wrrwcrrr-",
    without_recording: "wcwwccccd",
    as_bfloat16: "ccwccccwd",
    sums_to_a_number: "rcrrcrrc-",
    adds_what_is_yielded: "crccccccs",
    sorts: "ccccccccs",
    expands: "cccccccws",
    no_grad_layer: "wrwwccccd",
    switched_off: "wrwwccccd",
    frozen_weight: "crccccccs",
    hooked: "wrrwcwcc-",
    counts_calls: "wrwwcwwcs",
    class_counter: "wrwwcwwcs",
    moves_a_mean: "crwcccccd",
    replaces_a_buffer: "wrwwccwcd",
    adds_to_a_buffer: "crwcccccd",
    trains_a_norm: "crcccccws",
    decides_by_training: "wrwwcpwcd",
    runs_backward: "wrcwcwrcs",
    returns_a_parameter: "crcccccws",
    reads_bias: "crccccccs",
}
