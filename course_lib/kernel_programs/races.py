"""Find accesses of one launch whose result depends on the order in which a GPU runs its programs.

Programs of a launch run in any order and at the same time. A program that reads what another one writes gets the old or
the new value; where two programs write, one of their values is there in the end. Atomic operations of several programs
on one element lose no value.
"""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Action: TypeAlias = Literal["load", "store", "atomic"]
Flags: TypeAlias = NDArray[np.bool_]
Numbers: TypeAlias = NDArray[np.int64]
Place: TypeAlias = tuple[int, str]  # a launch and a tensor
NOBODY = -1


@dataclass(frozen=True)
class Conflict:
    """An element that two programs of one launch use, in an order that changes from run to run."""

    launch: int
    tensor: str
    element: int
    programs: tuple[int, int]
    action: Action
    """What the second program did."""


class _Users:
    """Which program stored each element of one tensor last, and when; which one changed it last by an atomic operation,
    and when; which one read it first, and which other last."""

    def __init__(self, elements: int) -> None:
        self.writer, self.changer, self.reader, self.second = np.full((4, elements), NOBODY)
        self.written, self.changed = np.zeros((2, elements), np.int64)
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
        self.conflicts: dict[Place, Conflict] = {}
        """By launch and tensor, the first element that one program writes and another one uses, without a lock."""
        self.reordered: dict[Place, Conflict] = {}
        """By launch and tensor, the first element that several programs change by atomic operations."""
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
        users = self._users.setdefault(tensor, _Users(size))
        own = (tensor, int(elements[0])) if elements.size == 1 else None  # no lock of itself
        writers, changers = users.writer[elements], users.changer[elements]
        first, second = users.reader[elements], users.second[elements]
        readers = np.where(first == program, second, first)
        clash = self._unordered(program, own, writers, users.written[elements])
        read = (writers == NOBODY) & (readers != NOBODY) & (readers != program)
        used = tensor, elements, program, action
        self._note(self.conflicts, used, clash, writers)
        if action != "load":
            self._note(self.conflicts, used, read, readers)
        if action != "atomic":
            unordered = self._unordered(program, own, changers, users.changed[elements])
            self._note(self.conflicts, used, unordered, changers)
        else:
            self._note(self.reordered, used, (changers != NOBODY) & (changers != program), changers)
            if own:
                self._taken.add(own)
                self._changed.setdefault(own, {})[program] = self._time
            users.changer[elements], users.changed[elements] = program, self._time
            return np.zeros(elements.size, bool), elements
        if action == "load":
            users.second[elements] = np.where((first != NOBODY) & (first != program), program, second)
            users.reader[elements] = np.where(first == NOBODY, program, first)
            return clash, writers
        users.raced[elements] |= read
        users.writer[elements], users.written[elements] = program, self._time
        return users.raced[elements], readers

    def _note(
        self, found: dict[Place, Conflict], used: tuple[str, Numbers, int, Action], where: Flags, others: Numbers
    ) -> None:
        """Keep the first of these elements that another program uses too, unless the launch has one of this tensor."""
        tensor, elements, program, action = used
        if where.any() and (self._launch, tensor) not in found:
            at = int(np.argmax(where))
            both = int(others[at]), program
            found[self._launch, tensor] = Conflict(self._launch, tensor, int(elements[at]), both, action)

    def _unordered(self, program: int, own: tuple[str, int] | None, others: Numbers, when: Numbers) -> Flags:
        """Return where another program wrote, and no lock but `own` lets this one see what it wrote."""
        clash = (others != NOBODY) & (others != program)
        for other in np.unique(others[clash]):
            clash &= (others != other) | (when > self._seen_of(int(other), own))
        return clash

    def _seen_of(self, other: int, own: tuple[str, int] | None) -> int:
        """Return until when this program sees what another one wrote, by locks that both used."""
        return max((self._changed[key].get(other, 0) for key in self._taken if key != own), default=0)


def changed(memory: Any, pointers: Any, values: Any, among: Flags) -> Flags:
    """Return at which of these places the memory holds other bytes than the values to be stored there."""
    there = memory.load(pointers, among, np.zeros(pointers.shape, values.dtype), values.dtype)
    differs = np.ascontiguousarray(there).view(np.uint8) != np.ascontiguousarray(values).view(np.uint8)
    return among & differs.reshape(*pointers.shape, values.dtype.itemsize).any(-1)
