"""Runs of answers that capture and replay; the text of this file is sent to the worker, which reports plain data.

The worker writes down what is launched on which memory, and nothing else. The host replays that on inputs that it draws
afterwards, see `launch_machine.py`, and calls only the functions that make programs, models and their inputs. Each
program holds a Python number that changes after the capture: a replay keeps the old one.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.launches import Graph, is_capturing, replayed_graph
from course_lib.launches.launch_record import address_of, reads_on_host, starts_nothing, tensors_in, written_by

UNDISPATCHED = {"tolist", "numpy", "__array__"}  # reads for which PyTorch dispatches no operator
READ = "read"  # what such a read is called among the operators
SETS_STORAGE = "aten.set_."
PLACES = {"dtype", "layout", "device", "pin_memory", "memory_format"}  # options: here all is float32 on the CPU
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


def program(steps: Sequence[str], number: Sequence[float]) -> Callable[..., torch.Tensor]:
    """Return a function of two tensors; Python reads `number[0]` in each call."""
    states: States = {}

    def function(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        hidden = first
        for step in steps:
            hidden = STEPS[step](hidden, second, number[0], states)
        return hidden

    return function


def inputs(call: Mapping[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs of a call, which has their shapes and a seed."""
    generator = torch.Generator().manual_seed(call["seed"])
    first, second = (random(generator, *shape) for shape in call["shapes"])
    return first, second


class _Lists(TorchFunctionMode):
    """Note the calls by which Python gets lists and arrays of numbers from tensors."""

    def __init__(self, note: Callable[[torch.Tensor, Any], None]) -> None:
        super().__init__()
        self._note = note

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in UNDISPATCHED:
            self._note(args[0], result)
        return result


class Recorder(TorchDispatchMode):
    """Write down what is launched, as data: operators, numbers, and memory by the number of its buffer.

    A capture launches nothing. Views and reserved memory are no launches. A graph is written down where it is replayed
    first, and its number where it is replayed again. The states of the random numbers before and after what draws have
    numbers, too.
    """

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Any] = []
        self.sizes: list[int] = []  # how many numbers each buffer holds
        self._buffers: dict[int, int] = {}
        self._alive: list[Any] = []  # so that no address is given away twice
        self._states: dict[bytes, int] = {}
        self._values: list[Any] = []
        self._lists = _Lists(self._read)
        self._graphs: dict[int, int] = {}  # the numbers of captures
        self._replay, self._replays = Graph.replay, False

    def __enter__(self) -> Any:
        self._lists.__enter__()
        setattr(Graph, "replay", lambda graph: self._replayed(graph))  # noqa: B010 - mypy knows it as a method
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:
        super().__exit__(*raised)
        setattr(Graph, "replay", self._replay)  # noqa: B010
        self._lists.__exit__(*raised)

    def _replayed(self, graph: Graph) -> None:
        steps, new, before = graph._steps, {}, self._state()
        self._replays = True
        try:
            if id(steps) not in self._graphs:
                new["steps"] = [self._written(each.func, each.args, each.options, each.results) for each in steps]
            self._replay(graph)
        finally:
            self._replays = False
        self._alive.append(steps)
        number = self._graphs.setdefault(id(steps), len(self._graphs))
        self.events.append({"replay": number, "states": [before, self._state()], **new})

    def given(self, tensors: Sequence[torch.Tensor]) -> list[int]:
        """Return the numbers of the buffers of tensors that the host gives."""
        return [self.view(tensor)["buffer"] for tensor in tensors]

    def seed(self, seed: int) -> None:
        """Set the seed of the random numbers, and write down which state this gives."""
        torch.manual_seed(seed)
        self.events.append({"seeded": self._state()})

    def call(self, function: Callable[..., Any], *inputs: torch.Tensor) -> str | None:
        """Call a function and write down its launches and its result; return the class of a result that is none."""
        self.events.append({"call": True})
        with self:
            output = function(*inputs)
        if type(output) is float:  # the host read it, as `.item()` does
            self.events.append({"returned": {"read": self._place_of(output)}})
        elif isinstance(output, torch.Tensor):
            self.events.append({"returned": self.view(output)})
        else:
            return type(output).__name__
        return None

    def view(self, tensor: torch.Tensor, *, result: bool = False) -> Mapping[str, Any]:
        """Return a tensor as data: its buffer, and where in it the tensor lies."""
        address, storage = address_of(tensor), tensor.untyped_storage()
        if address not in self._buffers:
            self._buffers[address] = number = len(self.sizes)
            self._alive.append(storage)
            self.sizes.append(storage.nbytes() // 4)
            of_host = tensor.numel() == 1 and not result and not self._replays
            place = self._place_of(float(tensor)) if of_host else None
            if place is not None:  # as of `torch.tensor(loss.item())`
                self.events.append({"read": place, "buffer": number})
        layout = [tensor.storage_offset(), [*tensor.shape], [*tensor.stride()]]
        if tensor.dtype == torch.uint8:  # the bytes of a whole storage, as `copy.deepcopy` copies it
            layout = [0, [storage.nbytes() // 4], [1]]
        return {"buffer": self._buffers[address], "layout": layout}

    def _place_of(self, number: float) -> int | None:
        """Return which value that the host read is this number."""
        return next((place for place, value in enumerate(self._values) if value == number), None)

    def _state(self) -> int:
        with torch._C.DisableTorchFunction():  # the answer does not read here
            state = torch.get_rng_state().numpy().tobytes()
        return self._states.setdefault(state, len(self._states))

    def _read(self, tensor: torch.Tensor, value: Any) -> None:
        self.events.append(self._written(READ, (tensor,), {}, None))
        self._values.append(value)

    def _written(self, operator: Any, args: Any, options: Any, result: Any) -> Mapping[str, Any]:
        launch = {"operator": str(operator), "args": self._plain(args), "options": self._plain(options)}
        return {**launch, "results": [self.view(tensor, result=True) for tensor in tensors_in(result)]}

    def _plain(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self._plain(item) for item in value]
        if isinstance(value, dict):
            return {name: self._plain(item) for name, item in value.items() if name not in PLACES}
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return self.view(value) if isinstance(value, torch.Tensor) else value

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        if self._replays:
            return func(*args, **options)
        before = self._state() if torch.Tag.nondeterministic_seeded in func.tags else None
        result = func(*args, **options)
        self._alive += tensors_in((args, options, result))
        if is_capturing() or str(func).startswith(SETS_STORAGE) or starts_nothing(func, args, options, result):
            return result
        made = None if written_by(func, args, options) else result
        self.events.append(self._written(func, args, options, made))
        if before is not None:
            self.events[-1]["states"] = [before, self._state()]
        if reads_on_host(func):
            self._values.append(result)
        return result


def random(generator: torch.Generator, *shape: int) -> torch.Tensor:
    """Return random numbers."""
    return torch.randn(shape, generator=generator)


def call_in_turn(answer: Callable[..., Any], steps: Sequence[str], calls: Sequence[Mapping[str, Any]]) -> Any:
    """Call what `answer` makes of a program, and report what is launched, as data.

    The program's number changes after each first call of its shapes. A call with `draws` sets the seed before.
    """
    replayed_graph._warm.clear()  # as in a process that begins
    number, recorder, seen = [number_of(0)], Recorder(), set()
    given = [inputs(call) for call in calls]
    numbers = recorder.given([tensor for pair in given for tensor in pair])
    with recorder:
        replayed = answer(program(steps, number))
    if not callable(replayed):
        return {"class": type(replayed).__name__}
    for call, tensors in zip(calls, given, strict=True):
        if call["draws"] is not None:
            recorder.seed(call["draws"])
        other = recorder.call(replayed, *tensors)
        if other is not None:
            return {"class": other}
        seen.add(str(call["shapes"]))
        number[0] = number_of(len(seen))
    return {"given": numbers, "events": recorder.events, "sizes": recorder.sizes}


class Model(nn.Module):
    """Two linear layers, with dropout and a running mean if asked; `scale` is a Python number."""

    mean: torch.Tensor

    def __init__(self, dropout: float, running: bool) -> None:
        super().__init__()
        self.first, self.second, self.dropout, self.scale = nn.Linear(6, 8), nn.Linear(8, 3), dropout, 1.5
        if running:
            self.register_buffer("mean", torch.zeros(8))

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        """Map (rows, 6) to (rows, 3)."""
        hidden = torch.tanh(self.first(batch)) * self.scale
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
            parameter.copy_(random(generator, *parameter.shape) * 0.5)
            parameter.grad = torch.zeros_like(parameter)
    batches = [random(generator, 5, 6) for _ in range(run["steps"])]
    return model, OPTIMIZERS[run["optimizer"]](model.parameters()), batches


def held(model: Model, batches: Sequence[torch.Tensor]) -> dict[str, dict[str, torch.Tensor]]:
    """Return all tensors that a training is given, by what they are and by name."""
    return {
        "weights": {name: tensor.detach() for name, tensor in model.state_dict().items()},
        "gradients": {name: each.grad for name, each in model.named_parameters() if each.grad is not None},
        "batches": {str(number): batch for number, batch in enumerate(batches, 1)},
    }


def train_in_turn(answer: Callable[..., Any], run: Mapping[str, Any]) -> Any:
    """Train by the step that `answer` makes, and report what is launched, as data."""
    replayed_graph._warm.clear()  # as in a process that begins
    (model, optimizer, batches), recorder = made(run), Recorder()
    numbers = recorder.given([tensor for each in held(model, batches).values() for tensor in each.values()])
    recorder.seed(run["seed"])
    with recorder:
        step = answer(model, optimizer, batches[0])
    if not callable(step):
        return {"class": type(step).__name__}
    model.scale = -1.0
    for batch in batches:
        other = recorder.call(step, batch)
        if other is not None:
            return {"class": other}
    return {"given": numbers, "events": recorder.events, "sizes": recorder.sizes}
