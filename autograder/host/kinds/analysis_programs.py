"""Programs that answers about graphs are asked for; the text of this file is sent to the worker, which makes them too.

So it imports nothing but PyTorch. A graph is made from steps, plain data that a check draws afresh:
`{"call": name, "args": [...], "kwargs": [[name, value], ...], "name": str}` where `{"step": i}` among the arguments
stands for the result of step `i`; a step without `"call"` is an input.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "relu": torch.relu,
    "gelu": F.gelu,
    "neg": torch.neg,
    "add": torch.add,
    "mul": torch.mul,
    "matmul": torch.matmul,
    "cat": torch.cat,
    "softmax": torch.softmax,
    "sum": torch.sum,
    "transpose": torch.transpose,
    "chunk": torch.chunk,
    "max": torch.max,
    "getitem": operator.getitem,
    "assert": torch._assert,
    "float": float,
}
METHODS = ("size", "dim", "view", "to")


def graph(
    steps: Sequence[Mapping[str, Any]], returns: Any, shapes: list[list[int]], device: str = "cpu"
) -> tuple[Any, ...]:
    """Return a graph module of the steps, and inputs of the given shapes."""
    made = fx.Graph()
    nodes: list[fx.Node] = []
    for step in steps:
        call, args = step.get("call"), [_filled(a, nodes) for a in step.get("args", [])]
        kwargs = {name: _filled(value, nodes) for name, value in step.get("kwargs", [])}
        if call is None:
            nodes.append(made.placeholder(step["name"]))
        elif call in METHODS:
            nodes.append(made.create_node("call_method", call, tuple(args), kwargs, name=step["name"]))
        else:
            nodes.append(made.create_node("call_function", FUNCTIONS[call], tuple(args), kwargs, name=step["name"]))
    made.output(_tuples(_filled(returns, nodes)))
    inputs = [torch.empty(shape, device="meta") if device == "meta" else torch.randn(shape) for shape in shapes]
    return (fx.GraphModule({}, made), *inputs)


def graph_alone(steps: Sequence[Mapping[str, Any]], returns: Any, shapes: list[list[int]]) -> tuple[Any, ...]:
    """Return a graph module of the steps, and no inputs."""
    return graph(steps, returns, shapes)[:1]


def _filled(argument: Any, nodes: list[fx.Node]) -> Any:
    if isinstance(argument, dict):
        return nodes[argument["step"]]
    return [_filled(item, nodes) for item in argument] if isinstance(argument, list) else argument


def _tuples(value: Any) -> Any:
    return tuple(_tuples(v) for v in value) if isinstance(value, list) else value


class Attention(nn.Module):
    """An attention that looks at its values, so that torch.fx cannot look into it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, hidden: torch.Tensor, mask: torch.Tensor | None = None, **options: Any) -> torch.Tensor:
        """Map (rows, width) to (rows, width)."""
        if hidden.abs().max() > 10 and options.get("clip", True):
            hidden = hidden.clamp(-10, 10)
        return self.mix(hidden) if mask is None else self.mix(hidden * mask)


class Router(nn.Module):
    """Another part that looks at its values."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, 1)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (rows, width) to (rows, width)."""
        return hidden if float(self.gate(hidden).sum()) > 0 else -hidden


class AttentionScale(nn.Module):
    """A part that can be traced: no layer of torch.nn, without parts of its own, and named like one that cannot."""

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map any shape to the same shape."""
        return hidden * 0.5


class Block(nn.Module):
    """Attention with what stands around it, as libraries write it: options, early returns, lengths."""

    def __init__(self, width: int, attention: str, norm: str, activations: int, routed: bool) -> None:
        super().__init__()
        self.names = attention, norm
        self.add_module(attention, Attention(width))
        self.add_module(norm, nn.LayerNorm(width))
        self.router = Router(width) if routed else None
        self.scale = AttentionScale() if routed else None
        self.activations = nn.ModuleList(nn.Tanh() for _ in range(activations))

    def forward(self, hidden: torch.Tensor, output_all: bool = False) -> Any:
        """Map (rows, width) to (rows, width); with `output_all` return the input of the norm, too."""
        attention, norm = map(self.get_submodule, self.names)
        mixed = attention(hidden, clip=True)
        for part in (self.router, self.scale, *self.activations):
            mixed = mixed if part is None else part(mixed)
        result = norm(mixed + hidden)
        return (result, mixed) if output_all else result


class Model(nn.Module):
    """Blocks in a list called `name`, and the order in which they are called; one may be called again."""

    def __init__(self, width: int, name: str, blocks: Sequence[Mapping[str, Any]], calls: list[int]) -> None:
        super().__init__()
        self.add_module(name, nn.ModuleList(Block(width, **each) for each in blocks))
        self.name, self.calls = name, calls

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (rows, width) to (rows, width)."""
        for block in self.calls:
            hidden = self.get_submodule(f"{self.name}.{block}")(hidden)
        return hidden


def model(leaves: list[str], **options: Any) -> tuple[Any, ...]:
    """Return a model with parts that cannot be traced, and the names of the classes to keep whole."""
    return Model(**options), leaves
