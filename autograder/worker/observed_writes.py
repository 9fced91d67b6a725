"""Observe which nodes of a graph write into a tensor that was there before them, while the graph runs.

What an operator writes follows from its schema, so it does not matter whether a node writes by a method, by `out=`, by
`inplace=True`, or by a module. Schemas of normalisations leave out that they update their statistics, so the bits of
all tensors are compared, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import OpOverload
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def observed_writes(graph_module: fx.GraphModule, inputs: Sequence[Any]) -> tuple[str, ...]:
    """Run the graph on `inputs`, and return the names of the nodes that write, in order.

    >>> observed_writes(fx.symbolic_trace(lambda x: torch.relu(x + 1).mul_(2)), [torch.ones(2)])
    ('mul_',)
    """
    observer = _Observer(graph_module)
    with torch.no_grad():
        observer.run(*inputs)
    return tuple(observer.writers)


class _Observer(fx.Interpreter):
    """Runs one node after the other, and compares the tensors that are alive before and after it."""

    def __init__(self, graph_module: fx.GraphModule) -> None:
        super().__init__(graph_module)
        self.writers: list[str] = []
        self._own = [*graph_module.parameters(), *graph_module.buffers()]

    def run_node(self, n: fx.Node) -> Any:
        """Run one node."""
        if not n.op.startswith("call_"):
            return super().run_node(n)
        alive = [leaf for leaf in tree_leaves([*self.env.values(), self._own]) if isinstance(leaf, torch.Tensor)]
        before = [tensor.clone() for tensor in alive]
        mode = _WrittenStorages()
        with mode:
            result = super().run_node(n)
        there = {_storage(tensor) for tensor in alive}
        if there & mode.written or not all(map(_same_bits, alive, before)):
            self.writers.append(n.name)
        return result


class _WrittenStorages(TorchDispatchMode):
    """Collects the storages to which operators write by their schema."""

    def __init__(self) -> None:
        super().__init__()
        self.written: set[int] = set()

    def __torch_dispatch__(
        self, func: OpOverload, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        self.written |= {_storage(leaf) for leaf in _written_by(func, args, kwargs)}
        return func(*args, **kwargs)


def _written_by(func: OpOverload, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors that the schema of `func` says it writes to."""
    for position, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            yield from (leaf for leaf in tree_leaves(given) if isinstance(leaf, torch.Tensor))


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _same_bits(now: torch.Tensor, before: torch.Tensor) -> bool:
    return now.shape == before.shape and torch.equal(_bytes(now), _bytes(before))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    flat = torch.empty(tensor.numel(), dtype=tensor.dtype)  # its stride is 1, also where there is one element
    return flat.copy_(tensor.flatten()).view(torch.uint8)
