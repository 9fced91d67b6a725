"""Which memory a program allocated itself, and how much of it was alive at once."""

import weakref
from collections.abc import Iterable

import torch

from course_lib.graph.regions import storage_of


class Storages:
    """Follows the storages that appear while a program runs; each operator is shown to `saw` once it has run."""

    def __init__(self) -> None:
        self.made: dict[int, int] = {}  # storages of the program that are alive -> bytes
        self.given: dict[int, torch.Tensor] = {}  # storages from before; a tensor keeps each alive, and its number
        self.live_bytes = 0
        self.peak_bytes = 0

    def saw(self, operands: Iterable[torch.Tensor], results: Iterable[torch.Tensor]) -> None:
        """Take note of one operator."""
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
        # Python's object of a storage lives as long as the storage itself, also where only autograd holds on to it.
        weakref.finalize(storage, self._free, number).atexit = False

    def _free(self, number: int) -> None:
        self.live_bytes -= self.made.pop(number)
