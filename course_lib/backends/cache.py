"""A cache of compiled parts; the key is the graph of a part, and the shapes and types of its inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import torch
from torch import fx

Key = tuple[object, ...]
Kept = TypeVar("Kept")


class CompileCache(Generic[Kept]):
    """A cache of compiled parts in memory, which counts hits and misses.

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
        """Return the entry of `key`; compile and keep it if there is none yet."""
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
    """The properties of one input tensor that a compiled program relies on."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


def facts_of(inputs: Sequence[object]) -> Key:
    """Return the facts about inputs: shape, strides, type and device of a tensor, the value of a number."""
    return tuple(
        InputFacts(tuple(value.shape), tuple(value.stride()), value.dtype, value.device)
        if isinstance(value, torch.Tensor)
        else (type(value), value)
        for value in inputs
    )


def fingerprint(graph: fx.Graph) -> Key:
    """Return a key that is equal for graphs of the same calls, whatever their nodes are called."""
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
