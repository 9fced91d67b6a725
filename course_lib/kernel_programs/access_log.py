"""Record which program of a Triton kernel reads and writes which element of which tensor.

Triton's interpreter reaches memory through four functions. While a log is open, they are observed: each access is
compared with the addresses of all elements of the named tensors. An access to any other address is a stray: it is
recorded and never carried out, so a wrong kernel cannot end the process.
"""

import dataclasses
from types import TracebackType
from typing import Any

import numpy as np
import torch

from course_lib.errors import KernelError
from course_lib.kernel_programs.access_map import AccessMap
from course_lib.kernel_programs.accesses import Access, Stray, Traffic
from course_lib.kernel_programs.bfloat16 import Bfloat16
from course_lib.kernel_programs.interpreter import interpreter_of_triton
from course_lib.kernel_programs.races import NOBODY, Action, Conflict, Flags, Numbers, Races, changed
from course_lib.kernel_programs.unfilled import UndefinedLanes, line_of_kernel

UNREAD = 0xFF
"""Each byte of what a stray load gives: NaN in every floating-point format, -1 as an integer."""


class AccessLog:
    """Record all accesses of the kernels that run inside of the `with` block.

    >>> with AccessLog(x=x, out=out) as log:  # doctest: +SKIP
    ...     copy_kernel[(2,)](x, out, 10, BLOCK=8)
    >>> log.traffic("x").loads, log.strays  # doctest: +SKIP
    (10, [])

    A tensor that is made inside of the block gets its name by `add`. Of two tensors that share memory, an access
    counts for the one that was named first. Raises `KernelError` for a tensor that is not on the CPU, for a log inside
    of another one, and for a name that no tensor has.
    """

    def __init__(self, **tensors: torch.Tensor) -> None:
        self.accesses: list[Access] = []
        self.strays: list[Stray] = []
        self.grids: list[tuple[int, int, int]] = []
        self.widest = 0  # lanes of the largest block of addresses, masked ones included
        self.tensors: dict[str, torch.Tensor] = {}
        self.filled: list[str] = []  # tensors that were made with values, such as zeros
        self.undefined = UndefinedLanes()
        self.races = Races()
        self._interpreter: Any = None
        self._memory: Any = None
        self._said: Any = None
        self._addresses: Numbers = np.empty(0, np.int64)
        self._owners: Numbers = np.empty(0, np.int64)
        self._elements: Numbers = np.empty(0, np.int64)
        for name, tensor in tensors.items():
            self.add(name, tensor)

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Give a tensor a name, so that accesses to it are no strays."""
        if tensor.device.type != "cpu":
            raise KernelError(f"{name} is on {tensor.device}; the interpreter's accesses are seen on the CPU only.")
        owner = len(self.tensors)
        self.tensors[name] = tensor
        own = _addresses_of(tensor)
        addresses = np.concatenate([self._addresses, own])
        order = np.argsort(addresses, kind="stable")  # of equal addresses, the tensor that was named first
        self._addresses = addresses[order]
        self._owners = np.concatenate([self._owners, np.full(own.size, owner)])[order]
        self._elements = np.concatenate([self._elements, np.arange(own.size)])[order]

    def __enter__(self) -> "AccessLog":
        self._interpreter = interpreter_of_triton()
        self._memory = self._interpreter._interpreter
        if isinstance(self._memory, _ObservedMemory):
            raise KernelError("Another log is open; close it first, or name all tensors in one log.")
        self._interpreter._interpreter = _ObservedMemory(self._memory, self)
        builder = self._interpreter.interpreter_builder
        original = type(builder).set_grid_dim

        def set_grid_dim(*sizes: int) -> None:  # called once for each launch
            self.grids.append(sizes)  # type: ignore[arg-type]  # always three
            original(builder, *sizes)

        builder.set_grid_dim = set_grid_dim
        self.undefined.open(builder)
        self._bfloat16 = Bfloat16(self._interpreter)
        self._bfloat16.open()
        self._said = np.seterr(over="ignore", invalid="ignore")  # of what stands in undefined lanes
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._interpreter._interpreter = self._memory
        del self._interpreter.interpreter_builder.set_grid_dim
        self._bfloat16.close()
        self.undefined.close(self._interpreter.interpreter_builder)
        np.seterr(**self._said)

    def traffic(self, name: str) -> Traffic:
        """Return the counts of one tensor, over all launches."""
        tensor = self._named(name)
        found: dict[str, list[Numbers]] = {"load": [], "store": [], "atomic": []}
        for access in self.accesses:
            if access.tensor == name:
                found[access.action].append(access.elements)
        count = {action: sum(part.size for part in parts) for action, parts in found.items()}
        different = {a: len(np.unique(np.concatenate(parts))) if parts else 0 for a, parts in found.items()}
        return Traffic(
            name, tensor.numel(), count["load"], different["load"], count["store"], different["store"], count["atomic"]
        )

    def split(self, name: str, part_name: str, part: torch.Tensor) -> None:
        """Give a part of a tensor, a view of it, a name of its own, to which its past accesses count from now on.

        >>> log.split("out", "first row", out[0])  # doctest: +SKIP
        """
        whole, own = _addresses_of(self._named(name)), _addresses_of(part)
        order = np.argsort(own)
        found = []
        for access in self.accesses:
            if access.tensor != name or not own.size:
                found.append(access)
                continue
            addresses = whole[access.elements]
            places = np.minimum(np.searchsorted(own[order], addresses), own.size - 1)
            within = own[order][places] == addresses
            for of, elements in ((name, access.elements[~within]), (part_name, order[places[within]])):
                if elements.size:
                    found.append(dataclasses.replace(access, tensor=of, elements=elements))
        self.accesses = found
        self.tensors[part_name] = part

    def map(self, name: str, action: Action = "load", *, launch: int = 0) -> AccessMap:
        """Return a picture of a tensor of at most two dimensions: by which programs each element was accessed."""
        tensor = self._named(name)
        shape = tuple(tensor.shape) if tensor.ndim == 2 else (1, tensor.numel())
        programs: list[list[int]] = [[] for _ in range(tensor.numel())]
        for access in self.accesses:
            if (access.launch, access.tensor, access.action) == (launch, name, action):
                for element in access.elements:
                    programs[element].append(access.program)
        return AccessMap(name, action, (shape[0], shape[1]), tuple(map(tuple, programs)))

    def conflicts(self) -> list[Conflict]:
        """Return, for each launch and tensor, the first element that one program writes and another one uses.

        Nothing determines which of them comes first, so one sum or one value can be lost. Programs that take a lock in
        turn have no conflict, and neither do atomic operations on one element: those are in `reordered`.
        """
        return list(self.races.conflicts.values())

    def reordered(self) -> list[Conflict]:
        """Return, for each launch and tensor, the first element that several programs change by atomic operations.

        No change is lost, but their order changes from run to run, and with it the last bits of a sum of floats.
        """
        return list(self.races.reordered.values())

    def note(self, action: Action, pointers: Any, mask: Flags, size: int) -> tuple[Flags, Numbers]:
        """Record one access of all lanes under a mask; return which of them are elements of named tensors.

        Also return with which program each lane races, -1 for none; where races are not spoilt, none does. A lane of
        `size` bytes is one element; raises `KernelError` for a pointer that was cast to numbers of another size.
        """
        addresses = pointers.astype(np.int64).ravel()
        active = np.broadcast_to(mask, pointers.shape).ravel().astype(bool)  # Triton keeps some masks as integers
        places = np.minimum(np.searchsorted(self._addresses, addresses), max(0, self._addresses.size - 1))
        known = self._addresses[places] == addresses if self._addresses.size else np.zeros(addresses.size, bool)
        self.widest = max(self.widest, addresses.size)
        launch, program, line = len(self.grids) - 1, self._program(), line_of_kernel()
        names = list(self.tensors)
        inside, lanes = places[active & known], np.flatnonzero(active & known)
        owners, racing = self._owners[inside], np.full(addresses.size, NOBODY)
        for owner in np.unique(owners):
            own = self.tensors[names[owner]].element_size()
            if own != size:
                raise KernelError(
                    f"a {action} of {size} bytes a lane, and an element of {names[owner]} has {own}. Leave the type "
                    "of a pointer as it is; convert the block."
                )
            elements = self._elements[inside[owners == owner]]
            numel = self.tensors[names[owner]].numel()
            clash, others = self.races.others(launch, program, action, names[owner], elements, numel)
            if self.races.spoil:
                racing[lanes[owners == owner][clash]] = others[clash]
            self.accesses.append(Access(launch, program, action, names[owner], elements, line))
        if (active & ~known).any():
            outside = addresses[active & ~known]
            self.strays.append(self._stray(launch, program, action, outside, line))
        return (active & known).reshape(pointers.shape), racing.reshape(pointers.shape)

    def note_race(self, action: Action, address: int, other: int) -> None:
        """Record that this element's value was spoilt."""
        place = int(np.searchsorted(self._addresses, address))
        name, element = list(self.tensors)[self._owners[place]], int(self._elements[place])
        self.races.found.append(Conflict(len(self.grids) - 1, name, element, (other, self._program()), action))

    def _program(self) -> int:
        builder = self._interpreter.interpreter_builder
        (x, y, z), (_, columns, layers) = builder.grid_idx, builder.grid_dim
        return int((x * columns + y) * layers + z)

    def _stray(self, launch: int, program: int, action: Action, addresses: Numbers, line: int) -> Stray:
        starts = {name: tensor.data_ptr() for name, tensor in self.tensors.items() if tensor.numel()}
        before = {name: start for name, start in starts.items() if start <= addresses[0]}
        nearest = max(before, key=before.__getitem__, default="")
        beyond = (int(addresses[0]) - before[nearest]) // self.tensors[nearest].element_size() if nearest else 0
        return Stray(launch, program, action, addresses.size, line, nearest, beyond)

    def _named(self, name: str) -> torch.Tensor:
        if name not in self.tensors:
            raise KernelError(f"the log has no tensor {name!r}; it has {', '.join(self.tensors) or 'none'}.")
        return self.tensors[name]


class _ObservedMemory:
    """The interpreter's own functions for memory, with a log of what they are asked."""

    def __init__(self, memory: Any, log: AccessLog) -> None:
        self._memory, self._log = memory, log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def load(self, pointers: Any, mask: Any, other: Any, dtype: Any) -> Any:
        inside, racing = self._log.note("load", pointers, mask, dtype.itemsize)
        found = self._memory.load(pointers, inside, other, dtype)
        stray = np.broadcast_to(mask, pointers.shape) & ~inside
        return self._spoilt("load", found, pointers, racing != NOBODY, racing, stray)

    def store(self, pointers: Any, values: Any, mask: Any) -> Any:
        inside, racing = self._log.note("store", pointers, mask, values.dtype.itemsize)
        if (lost := racing != NOBODY).any():
            values = np.broadcast_to(values, pointers.shape)
            values = self._spoilt("store", values, pointers, changed(self._memory, pointers, values, lost), racing)
        return self._memory.store(pointers, values, inside)

    def _spoilt(
        self, action: Action, values: Any, pointers: Any, lost: Flags, racing: Numbers, stray: Flags | None = None
    ) -> Any:
        """Return the values with UNREAD in lanes that race or stray; note the first of those that race."""
        if lost.any():
            first = int(np.argmax(lost))
            self._log.note_race(action, int(pointers.ravel()[first]), int(racing.ravel()[first]))
        spoilt = lost if stray is None else lost | stray
        if not spoilt.any():
            return values
        return np.where(spoilt, np.full(1, UNREAD, np.uint8).repeat(values.dtype.itemsize).view(values.dtype), values)

    def atomic_rmw(self, operation: Any, pointers: Any, values: Any, mask: Any, order: Any) -> Any:
        inside, _ = self._log.note("atomic", pointers, mask, values.dtype.itemsize)
        return self._memory.atomic_rmw(operation, pointers, values, inside, order)

    def atomic_cas(self, pointers: Any, expected: Any, values: Any, order: Any) -> Any:
        if not self._log.note("atomic", pointers, np.ones(pointers.shape, bool), values.dtype.itemsize)[0].all():
            raise KernelError("an atomic exchange at an address outside of every tensor")
        return self._memory.atomic_cas(pointers, expected, values, order)


def _addresses_of(tensor: torch.Tensor) -> Numbers:
    """Return the address of each element, row by row."""
    offsets = np.zeros(tuple(tensor.shape), np.int64)
    for axis, (size, stride) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)):
        along = [1] * tensor.ndim
        along[axis] = size
        offsets += (np.arange(size) * stride).reshape(along)
    return tensor.data_ptr() + offsets.ravel() * tensor.element_size()
