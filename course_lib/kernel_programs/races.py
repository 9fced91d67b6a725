"""Find accesses of one launch whose result depends on the order in which a GPU runs its programs.

Programs of a launch run in any order and at the same time. A program that reads what another one writes gets the old or
the new value. What two programs only write is in `AccessLog.conflicts`: one of their values is there in the end.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Action: TypeAlias = Literal["load", "store", "atomic"]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Conflict:
    """An element that one program writes and another program of the same launch reads or writes.

    Programs of a launch run in any order and at the same time, so nothing determines its value. Atomic additions by two
    programs add up, in an order that changes from run to run.
    """

    launch: int
    tensor: str
    element: int
    programs: tuple[int, int]
    action: Action
    """What the second program did."""


class _Users:
    """Which program wrote each element of one tensor last, and when; which one read it first, and which other last."""

    def __init__(self, elements: int) -> None:
        self.writer, self.reader, self.second = np.full((3, elements), NOBODY)
        self.written = np.zeros(elements, np.int64)
        self.raced = np.zeros(elements, bool)


class Races:
    """Follow the accesses of each launch, in their order, and spoil the values of those that race.

    A program that takes a lock by an atomic operation on one element sees what others wrote before they gave it back:
    an access is no race where the writer has changed the same element since, atomically.
    """

    def __init__(self) -> None:
        self.spoil = False
        """Whether a value that depends on the order of programs is spoilt, so that the result shows it."""
        self.found: list[Conflict] = []
        """The accesses that were spoilt, one for each load or store."""
        self._launch = self._program = -1
        self._time = 0
        self._users: dict[str, _Users] = {}
        self._changed: dict[tuple[str, int], dict[int, int]] = {}  # by element: when each program changed it last
        self._taken: set[tuple[str, int]] = set()  # elements that this program has changed atomically

    def others(
        self, launch: int, program: int, action: Action, tensor: str, elements: Numbers, size: int
    ) -> tuple[Flags, Numbers]:
        """Return which of these elements of a tensor with `size` elements race with another program, and with which.

        A store to such an element races only if it changes the value, and only with a program that has read it.
        """
        if launch != self._launch:
            self._launch, self._program, self._users, self._changed = launch, -1, {}, {}
        if program != self._program:
            self._program, self._taken = program, set()
        self._time += 1
        if action == "atomic":
            if elements.size == 1:
                key = tensor, int(elements[0])
                self._taken.add(key)
                self._changed.setdefault(key, {})[program] = self._time
            return np.zeros(elements.size, bool), elements
        users = self._users.setdefault(tensor, _Users(size))
        writers = users.writer[elements]
        clash = (writers != NOBODY) & (writers != program)
        for writer in np.unique(writers[clash]):
            clash &= (writers != writer) | (users.written[elements] > self._seen_of(int(writer)))
        first, second = users.reader[elements], users.second[elements]
        if action == "load":
            users.second[elements] = np.where((first != NOBODY) & (first != program), program, second)
            users.reader[elements] = np.where(first == NOBODY, program, first)
            return clash, writers
        readers = np.where(first == program, second, first)
        read = (writers == NOBODY) & (readers != NOBODY) & (readers != program)
        users.raced[elements] |= read
        users.writer[elements], users.written[elements] = program, self._time
        return users.raced[elements], readers

    def _seen_of(self, other: int) -> int:
        """Return until when this program sees what another one wrote, by locks that both used."""
        return max((self._changed[key].get(other, 0) for key in self._taken), default=0)


def changed(memory: Any, pointers: Any, values: Any, among: Flags) -> Flags:
    """Return at which of these places the memory holds other bytes than the values to be stored there."""
    there = memory.load(pointers, among, np.zeros(pointers.shape, values.dtype), values.dtype)
    differs = np.ascontiguousarray(there).view(np.uint8) != np.ascontiguousarray(values).view(np.uint8)
    return among & differs.reshape(*pointers.shape, values.dtype.itemsize).any(-1)
