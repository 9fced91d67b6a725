"""The traffic that no fusion can avoid: what comes from outside is read once, what leaves is written once."""

import collections
from collections.abc import Iterable

import torch

from course_lib.graph.regions import Region, distinct_bytes, regions, storage_of, tensors_in
from course_lib.graph.storages import Storages


class MinimumTraffic:
    """Collects, operator by operator, what a program reads of memory from before, and what it writes there."""

    def __init__(self, storages: Storages) -> None:
        self._storages = storages
        self._read: dict[int, dict[Region, int]] = collections.defaultdict(dict)
        self._written: dict[int, dict[Region, int]] = collections.defaultdict(dict)

    def saw_read(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take note of operands that are read."""
        for region, size in regions(tensors).items():
            storage = int(str(region[0]))
            if storage in self._storages.given and region not in self._written[storage]:
                self._read[storage][region] = size

    def saw_rows_read(self, table: torch.Tensor, rows_bytes: int) -> None:
        """Take note of a gather, which reads some rows of a table."""
        storage = storage_of(table)
        if storage in self._storages.given:
            self._read[storage][storage, "rows", len(self._read[storage])] = rows_bytes

    def saw_written(self, tensors: Iterable[torch.Tensor]) -> None:
        """Take note of operands that are written to in place."""
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
        """Return the bytes of parts that may overlap: never more than the whole storage."""
        return min(sum(parts.values()), self._storages.given[storage].untyped_storage().nbytes()) if parts else 0
