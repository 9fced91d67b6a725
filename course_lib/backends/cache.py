"""What was compiled before: kept by the graph of a part and by what is known of its inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import fx

Key = tuple[object, ...]
Kept = TypeVar("Kept")


class CompileCache(Generic[Kept]):
    """Keeps what was compiled, in memory, and counts.

        >>> cache = CompileCache()
        >>> cache.get(("graph", "facts"), lambda: "program"), cache.get(("graph", "facts"), lambda: "another")
        ('program', 'program')
        >>> cache.hits, cache.misses
        (1, 1)

    Hand one to several backends and they share it. A part is found again if it has the same graph and inputs of the
    same kind, so layers of one shape are compiled once.
    """

    def __init__(self) -> None:
        self._kept: dict[Key, Kept] = {}
        self.hits = 0
        self.misses = 0

    def get(self, key: Key, compile_it: Callable[[], Kept]) -> Kept:
        """Return what is kept under `key`; compile and keep it if there is nothing yet."""
        if key in self._kept:
            self.hits += 1
            return self._kept[key]
        self.misses += 1
        self._kept[key] = compile_it()
        return self._kept[key]

    def clear(self) -> None:
        """Forget everything, and count from zero."""
        self._kept.clear()
        self.hits = self.misses = 0

    def __len__(self) -> int:
        return len(self._kept)


@dataclass(frozen=True)
class InputFacts:
    """What a compiled program may rely on about one tensor."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def facts_of(inputs: Sequence[object]) -> Key:
    """Return what is known of inputs: of a tensor shape, strides, type and device, of a number its value."""
    return tuple(
        InputFacts(tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
        if isinstance(value, torch.Tensor)
        else (type(value), value)
        for value in inputs
    )


def fingerprint(graph: fx.Graph) -> Key:
    """Return what a graph computes, whatever its nodes are called; equal for equal graphs."""
    number = {node: position for position, node in enumerate(graph.nodes)}

    def plain(value: object) -> object:
        if isinstance(value, fx.Node):
            return ("node", number[value])
        if isinstance(value, (tuple, list)):
            return (type(value).__name__, *map(plain, value))
        if isinstance(value, dict):
            return ("dict", *((key, plain(part)) for key, part in value.items()))
        return (type(value).__name__, str(value))  # 1, 1.0 and True are equal in Python, and not the same argument

    return tuple(
        (node.op, str(node.target) if node.op != "placeholder" else "", plain(node.args), plain(node.kwargs))
        for node in graph.nodes
    )
