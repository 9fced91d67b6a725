"""Runs of answers that capture and replay; the text of this file is sent to the worker, which reports plain data.

The host calls only the functions that make programs, models and their inputs. Each program holds a Python number that
changes after the capture. A replay keeps the old one, and an eager call computes with the new one. A witness notes
which memory the launches read: a replay reads the same memory each time, and an eager call makes new memory. And each
program keeps a tensor of its middle, which is filled with NaN between the calls: only a replay writes it again.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ATEN = torch.ops.aten
COPIES = (ATEN.copy_.default, ATEN._foreach_copy_.default)  # these may read new memory: they bring inputs in
ADDRESS: Callable[[torch.Tensor], int] = vars(torch.Tensor.__mro__[1])["data_ptr"]
"""A method of a type in C, whose methods nobody can replace."""
UNDISPATCHED = {"tolist", "numpy", "__array__"}  # reads for which PyTorch dispatches no operator
HOST_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
States = dict[Any, torch.Tensor]
STEPS: dict[str, Callable[[torch.Tensor, torch.Tensor, float, States], torch.Tensor]] = {
    "sin": lambda hidden, other, number, states: torch.sin(hidden),
    "tanh": lambda hidden, other, number, states: torch.tanh(hidden),
    "times": lambda hidden, other, number, states: hidden * other,
    "plus": lambda hidden, other, number, states: hidden + other,
    "scale": lambda hidden, other, number, states: hidden * number,
    "drop": lambda hidden, other, number, states: F.dropout(hidden, 0.5),
    "count": lambda hidden, other, number, states: hidden + _counter(hidden, states).add_(1),
}


def _counter(hidden: torch.Tensor, states: States) -> torch.Tensor:
    """Return the counter for this shape, which the first call makes."""
    if hidden.shape not in states:
        states[hidden.shape] = torch.zeros(hidden.shape[-1])
    return states[hidden.shape]


def number_of(shapes_seen: int) -> float:
    """Return the number that a program holds after so many shapes."""
    return 0.5 + 0.25 * shapes_seen


def program(
    steps: Sequence[str], number: Sequence[float], middles: list[torch.Tensor] | None = None
) -> Callable[..., torch.Tensor]:
    """Return a function of two tensors; Python reads `number[0]` in each call, and adds a tensor to `middles`."""
    states: States = {}

    def function(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        hidden = first
        for place, step in enumerate(steps):
            hidden = STEPS[step](hidden, second, number[0], states)
            if middles is not None and place == 1:
                middles.append(hidden)
        return hidden

    return function


def inputs(call: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs of a call, which has their shapes and a seed."""
    generator = torch.Generator().manual_seed(call["seed"])
    first, second = (torch.randn(shape, generator=generator) for shape in call["shapes"])
    return first, second


class _Lists(TorchFunctionMode):
    """Count the calls by which Python gets lists and arrays of numbers from tensors."""

    found = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.found += getattr(func, "__name__", "") in UNDISPATCHED
        return func(*args, **(kwargs or {}))


class Witness(TorchDispatchMode):
    """Note the addresses that launches read, but for copies in place, and how often the host reads a value.

    A view starts no launch, and is left out.
    """

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.host_reads = 0
        self.alive: list[Any] = []  # so that no address is given away twice
        self._lists = _Lists()

    def __enter__(self) -> Any:
        self._lists.__enter__()
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        self._lists.__exit__(*raised)
        self.host_reads += self._lists.found

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        given = [leaf for leaf in tree_leaves((args, options)) if isinstance(leaf, torch.Tensor)]
        result = func(*args, **options)
        self.alive.append((given, result))
        self.host_reads += any(tag in func.tags for tag in HOST_TAGS)
        if func not in COPIES and not func.is_view:
            self.reads += [ADDRESS(tensor) for tensor in given]
        return result


def _plain(tensor: torch.Tensor) -> Mapping[str, Any]:
    """Return shape and values; None stands for what is no finite number."""
    values = tensor.detach().double().flatten().tolist()
    return {"shape": list(tensor.shape), "values": [value if math.isfinite(value) else None for value in values]}


def _spoil(middle: torch.Tensor | None) -> None:
    """Fill a tensor with NaN, which a replay writes over."""
    if middle is not None:
        middle.data.fill_(torch.nan)


def call_in_turn(answer: Callable[..., Any], steps: Sequence[str], calls: Sequence[Mapping[str, Any]]) -> Any:
    """Call what `answer` makes of a program, and report outputs, inputs and what the witness saw of each call.

    The program's number changes after each first call of its shapes. A call with `draws` sets the seed before.
    """
    number, witnesses, rows = [number_of(0)], [], []
    middles: list[torch.Tensor] = []
    captured: dict[str, torch.Tensor] = {}  # the last tensor of the middle in the first call of these shapes
    replayed = answer(program(steps, number, middles))
    if not callable(replayed):
        return {"class": type(replayed).__name__}
    for call in calls:
        given = inputs(call)
        if call["draws"] is not None:
            torch.manual_seed(call["draws"])
        shapes = str(call["shapes"])
        _spoil(captured.get(shapes))
        with Witness() as witness:
            output = replayed(*given)
        if not isinstance(output, torch.Tensor):
            return {"class": type(output).__name__}
        witnesses.append(witness)
        captured.setdefault(shapes, middles[-1] if middles else torch.zeros(0))
        rows.append((given, output, _plain(output), _plain(captured[shapes])))
        number[0] = number_of(len(captured))
    return {
        "outputs": [now for _, _, now, _ in rows],
        "later": [_plain(output) for _, output, _, _ in rows],
        "middles": [middle for *_, middle in rows],
        "inputs": [_plain(tensor) for given, *_ in rows for tensor in given],
        "reads": [witness.reads for witness in witnesses],
        "host_reads": [witness.host_reads for witness in witnesses],
    }


class Model(nn.Module):
    """Two linear layers, with dropout and a running mean if asked; `scale` is a Python number."""

    mean: torch.Tensor

    def __init__(self, dropout: float, running: bool) -> None:
        super().__init__()
        self.first, self.second, self.dropout, self.scale = nn.Linear(6, 8), nn.Linear(8, 3), dropout, 1.5
        self.middles: list[torch.Tensor] = []
        if running:
            self.register_buffer("mean", torch.zeros(8))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Map (rows, 6) to (rows, 3)."""
        hidden = torch.tanh(self.first(batch)) * self.scale
        self.middles.append(hidden.detach())
        if "mean" in self._buffers:
            self.mean.mul_(0.9).add_(hidden.detach().mean(0), alpha=0.1)
            hidden = hidden - self.mean
        return self.second(F.dropout(hidden, self.dropout) if self.dropout else hidden)


OPTIMIZERS: Mapping[str, Callable[[Any], torch.optim.Optimizer]] = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1),
    "SGD with momentum": lambda parameters: torch.optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=0.01),
    "RMSprop": lambda parameters: torch.optim.RMSprop(parameters, lr=0.01, momentum=0.5),
}


def made(run: Mapping[str, Any]) -> tuple[Model, torch.optim.Optimizer, list[torch.Tensor]]:
    """Return the model of a run, its optimizer and the batches, each (5, 6); gradients are zeros."""
    generator = torch.Generator().manual_seed(run["seed"])
    model = Model(run["dropout"], run["running"])
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
            parameter.grad = torch.zeros_like(parameter)
    batches = [torch.randn(5, 6, generator=generator) for _ in range(run["steps"])]
    return model, OPTIMIZERS[run["optimizer"]](model.parameters()), batches


def train_in_turn(answer: Callable[..., Any], run: Mapping[str, Any]) -> Any:
    """Train by the step that `answer` makes, and report losses, the state, and what the witness saw."""
    model, optimizer, batches = made(run)
    gradients = [parameter.grad for parameter in model.parameters()]
    torch.manual_seed(run["seed"])
    step = answer(model, optimizer, batches[0])
    if not callable(step):
        return {"class": type(step).__name__}
    model.scale, witnesses, losses, middles = -1.0, [], [], []
    captured = model.middles[-1] if model.middles else torch.zeros(0)
    for batch in batches:
        _spoil(captured)
        with Witness() as witness:
            loss = step(batch)
        loss = torch.tensor(loss) if type(loss) is float else loss  # the witness saw that the host read it
        if not isinstance(loss, torch.Tensor):
            return {"class": type(loss).__name__}
        witnesses.append(witness)
        losses.append((loss, _plain(loss)))
        middles.append(_plain(captured))
    return {
        "losses": [now for _, now in losses],
        "later": [_plain(loss) for loss, _ in losses],
        "middles": middles,
        "state": [_plain(tensor) for tensor in model.state_dict().values()],
        "gradients": [_plain(gradient) for gradient in gradients if gradient is not None],
        "inputs": [_plain(batch) for batch in batches],
        "reads": [witness.reads for witness in witnesses],
        "host_reads": [witness.host_reads for witness in witnesses],
    }
