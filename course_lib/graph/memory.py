"""Track the memory that tensors use: a repeated or expanded tensor uses its memory once."""

import collections
import weakref
from collections.abc import Iterable

import torch

from course_lib.errors import GraphError
from course_lib.layouts import kind_of

Region = tuple[object, ...]  # identifies a region of memory; begins with the storage


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors in a nest of tuples, lists and dicts."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def storage_of(tensor: torch.Tensor) -> int:
    """Return a number for the storage of a tensor, unique among those that are alive.

    Raises `GraphError` for a tensor without one, such as a sparse one.
    """
    try:
        return int(tensor.untyped_storage()._cdata)
    except NotImplementedError:
        raise _without_memory(tensor) from None


def _without_memory(tensor: torch.Tensor) -> GraphError:
    return GraphError(
        f"The program makes a {kind_of(tensor)} tensor, and shapes and costs are known of plain tensors only. Take the "
        "parts of the program before and after it, each by itself."
    )


def regions(tensors: Iterable[torch.Tensor]) -> dict[Region, int]:
    """Return the distinct regions of memory that tensors use, with their sizes in bytes."""
    found: dict[Region, int] = {}
    for tensor in tensors:
        if tensor.is_nested:
            raise _without_memory(tensor)
        # Sorted, so that a tensor and its transpose are the same region.
        real = sorted((size, stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
        elements = 0 if tensor.numel() == 0 else torch.Size(size for size, _ in real).numel()
        key = (storage_of(tensor), tensor.storage_offset(), tuple(real), tensor.dtype)
        found[key] = elements * tensor.element_size()
    return found


def distinct_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Return the number of distinct bytes of memory that tensors use."""
    return sum(regions(tensors).values())


class Storages:
    """Track the storages that a running program allocates; `saw` is called after each operator."""

    def __init__(self) -> None:
        self.made: dict[int, int] = {}  # storages of the program that are alive -> bytes
        self.given: dict[int, torch.Tensor] = {}  # storages that existed before; a tensor keeps each alive
        self.live_bytes = 0
        self.peak_bytes = 0

    def saw(self, operands: Iterable[torch.Tensor], results: Iterable[torch.Tensor]) -> None:
        """Record the storages of one operator."""
        for tensor in operands:
            number = storage_of(tensor)
            if number not in self.made:
                self.given.setdefault(number, tensor)
        for tensor in results:
            number = storage_of(tensor)
            if number not in self.made and number not in self.given:
                self._make(number, tensor.untyped_storage())

    def is_made(self, tensor: torch.Tensor) -> bool:
        """Tell whether the program allocated the memory of a tensor itself."""
        return storage_of(tensor) in self.made

    def _make(self, number: int, storage: torch.UntypedStorage) -> None:
        self.made[number] = storage.nbytes()
        self.live_bytes += storage.nbytes()
        self.peak_bytes = max(self.peak_bytes, self.live_bytes)
        # The Python object of a storage lives as long as the storage, even if only autograd refers to it.
        weakref.finalize(storage, self._free, number).atexit = False

    def _free(self, number: int) -> None:
        self.live_bytes -= self.made.pop(number)


class ByteBound:
    """Compute the least traffic of a program: existing memory is read once, results are written once."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._read: dict[int, dict[Region, int]] = collections.defaultdict(dict)
        self._written: dict[int, dict[Region, int]] = collections.defaultdict(dict)

    def saw_read(self, tensors: Iterable[torch.Tensor]) -> None:
        """Record operands that are read."""
        for region, size in regions(tensors).items():
            storage = int(str(region[0]))
            if storage in self._storages.given and region not in self._written[storage]:
                self._read[storage][region] = size

    def saw_rows_read(self, table: torch.Tensor, rows_bytes: int) -> None:
        """Record a gather, which reads some rows of a table."""
        storage = storage_of(table)
        if storage in self._storages.given:
            self._read[storage][storage, "rows", len(self._read[storage])] = rows_bytes

    def saw_written(self, tensors: Iterable[torch.Tensor]) -> None:
        """Record operands that are written in place."""
        for region, size in regions(tensors).items():
            storage = int(str(region[0]))
            if storage in self._storages.given:
                self._written[storage][region] = size

    def total_bytes(self, result: object) -> int:
        """Return the least number of bytes to move for a program that returned `result`."""
        given = self._storages.given
        gradients = [tensor.grad for tensor in given.values() if tensor.is_leaf and tensor.grad is not None]
        leaving = [tensor for tensor in (*tensors_in(result), *gradients) if self._storages.is_made(tensor)]
        inside = sum(self._capped(storage, parts) for storage, parts in (*self._read.items(), *self._written.items()))
        return inside + distinct_bytes(leaving)

    def _capped(self, storage: int, parts: dict[Region, int]) -> int:
        """Return the bytes of parts that may overlap, at most the bytes of the whole storage."""
        return min(sum(parts.values()), self._storages.given[storage].untyped_storage().nbytes()) if parts else 0
