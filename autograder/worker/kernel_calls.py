"""One call of a launcher on tensors: what it may see of them, its launches, and the log of their accesses."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch

from autograder.protocol import Result
from autograder.protocol.requests.kernel_runs import (
    KernelLaunch,
    KernelsRun,
    OperandTraffic,
    RunKernels,
    SharedElement,
    StrayAccess,
)
from autograder.worker.source import AnswerError
from autograder.worker.tensors import filled, to_raw

if TYPE_CHECKING:
    from course_lib.kernel_programs import Conflict

MAX_PROGRAMS = 2048
MAX_ELEMENTS = 1 << 22
MOST_TOLD = 20  # strays and conflicts of one run


class LauncherError(AnswerError):
    """A launcher asks for what the grader's interpreter does not run."""


class Operand:
    """A tensor as a launcher sees it: its form, and none of its values."""

    def __init__(self, name: str, memory: torch.Tensor, make: Callable[..., "Operand"], part_of: str = "") -> None:
        self.name, self.part_of = name, part_of
        self._memory, self._make = memory, make
        self.shape, self.ndim, self.dtype, self.device = memory.shape, memory.ndim, memory.dtype, memory.device
        self.numel, self.dim, self.element_size = memory.numel, memory.dim, memory.element_size
        self.size, self.stride, self.is_contiguous = memory.size, memory.stride, memory.is_contiguous
        self.new_empty, self.new_ones, self.new_zeros = map(self._new, (None, 1, 0))

    def new_full(self, size: Any, fill_value: float, **options: Any) -> "Operand":
        """Return a new tensor of this dtype that holds one number."""
        return self._new(fill_value)(size, **options)

    def _new(self, value: float | None) -> Callable[..., "Operand"]:
        return lambda *size, **options: self._make(
            torch.empty(*size, **{"dtype": self.dtype, **options, "device": "meta"}), value
        )

    def __getitem__(self, index: Any) -> "Operand":
        """Return a view, such as a row."""
        return Operand(f"{self.name}[{index}]", self._memory[index], self._make, self.part_of or self.name)

    def __len__(self) -> int:
        return len(self._memory)

    def _refuse(self, *_: object) -> bool:
        raise LauncherError(
            "The launcher computes with a tensor. It sees shapes and strides only: what is computed "
            "belongs into a kernel."
        )

    __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __matmul__ = __neg__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


class LauncherCall:
    """One call of a launcher: it makes the launcher's tensors, and launches kernels for it."""

    current: "LauncherCall"

    def __init__(self) -> None:
        self.launching = False
        self.refusal = ""  # what Triton's compiler says against a launch
        self.uncompiled = 0
        LauncherCall.current = self

    def make(self, form: torch.Tensor, value: float | None = None) -> Operand:
        """Return new memory of a form, filled with a value if there is one."""
        refuse_large(form)
        memory = torch.empty_strided(form.shape, form.stride(), dtype=form.dtype)
        if value is not None:
            memory = torch.full(form.shape, value, dtype=form.dtype)
        return Operand("new tensor", memory, self.make)

    def launch(self, kernel: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any]) -> None:
        """Run all programs of a grid, one after the other."""
        if self.launching:
            raise LauncherError(
                f"A kernel launches `{kernel.__name__}` with a grid; launchers do that. A kernel calls another one "
                f"without: {kernel.__name__}(...)."
            )
        given = [unwrapped(arg) for arg in args]
        named = {name: unwrapped(arg) for name, arg in kwargs.items()}
        grid = grid_of(grid, kernel, args, kwargs)
        programs = 1
        for size in grid:
            programs *= size
        if programs > MAX_PROGRAMS:
            raise LauncherError(
                f"The grid {grid} has {programs:,} programs; the interpreter takes a millisecond for each, and at most "
                f"{MAX_PROGRAMS:,} are run. Let each program take a block of elements."
            )
        self.note(kernel)
        self.launching = True
        kernel.run_on(given, grid, named, self)  # an error ends the run
        self.launching = False

    def outputs(self, returned: object) -> Sequence[Operand]:
        """Return the tensors that the launcher returned; raises `LauncherError` if Triton does not compile a launch."""
        if self.refusal:
            raise LauncherError(self.refusal)
        return outputs_of(returned)

    def note(self, kernel: Any) -> None:
        """Note that a kernel is about to run."""


class KernelCall(LauncherCall):
    """One call of a launcher: its tensors, its launches and the log of their accesses."""

    def __init__(self, names: Mapping[str, Any]) -> None:
        from course_lib.kernel_programs import AccessLog, LiveBlocks

        super().__init__()
        self._names, self._log, self._live = names, AccessLog(), LiveBlocks()
        self._operands: list[Operand] = []
        self._kernels: list[str] = []

    def call(self, request: RunKernels, tensors: Sequence[torch.Tensor]) -> Result[KernelsRun]:
        """Call the launcher, and return what it returned and what its kernels did."""
        inputs = [self._given(f"input {i}", tensor) for i, tensor in enumerate(tensors)]
        args, kwargs = filled(request.arguments, inputs)  # type: ignore[arg-type]  # operands in place of tensors
        self._log.undefined.zero_at = request.zero_at
        self._log.races.spoil = True
        with self._log, self._live:
            returned = self._names[request.launcher](*args, **kwargs)
        outputs = self.outputs(returned)
        found = self._launches(), self._strays(), _told(self._log.conflicts())
        numbers = tuple(map(self._number, outputs))
        operands = tuple(self._traffic(i, len(inputs), numbers) for i in range(len(self._operands)))
        undefined, races = tuple(self._log.undefined.lines[:MOST_TOLD]), _told(self._log.races.found)
        most, is_tuple = (self._log.widest, self._live.most), isinstance(returned, tuple | list)
        body = KernelsRun(is_tuple, numbers, operands, *found, *most, undefined, races, self.uncompiled)
        return Result(body, [to_raw(self._operands[i]._memory, "an output") for i in numbers])

    def make(self, form: torch.Tensor, value: float | None = None) -> Operand:
        """Return new memory of a form; without a value for all of it, what it holds spoils a result."""
        memory = _memory_for(form)
        if value is not None:
            memory.fill_(value)
        elif memory.is_floating_point():  # a maximum passes over NaN, and over no large number
            limit = torch.finfo(memory.dtype).max
            unfilled = torch.tensor([limit, torch.nan, -limit], dtype=memory.dtype)
            memory.copy_(unfilled.repeat(memory.numel() // 3 + 1)[: memory.numel()].view(memory.shape))
        return self._add(f"new tensor {len(self._operands)}", memory)

    def note(self, kernel: Any) -> None:
        """Keep the name of the kernel."""
        self._kernels.append(kernel.fn.__name__)

    def _given(self, name: str, tensor: torch.Tensor) -> Operand:
        memory = _memory_for(tensor)
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())  # of an expanded one
        memory[once].copy_(tensor[once])
        return self._add(name, memory)

    def _add(self, name: str, memory: torch.Tensor) -> Operand:
        self._log.add(name, memory)
        self._operands.append(Operand(name, memory, self.make))
        return self._operands[-1]

    def _number(self, output: Operand) -> int:
        if output.part_of.startswith("input"):
            raise LauncherError("The launcher returns a part of an input; return tensors that it made.")
        if output.part_of:  # what was stored there counts for the part
            name = f"part {len(self._operands)}"
            self._log.split(output.part_of, name, output._memory)
            self._operands.append(output := Operand(name, output._memory, self.make))
        return next(i for i, each in enumerate(self._operands) if each is output)

    def _traffic(self, number: int, inputs: int, outputs: Sequence[int]) -> OperandTraffic:
        found = self._log.traffic(self._operands[number].name)
        role: Literal["input", "output", "scratch"] = (
            "output" if number in outputs else "input" if number < inputs else "scratch"
        )
        counts = (found.elements, found.loads, found.loaded, found.stores, found.stored, found.atomics)
        return OperandTraffic(found.tensor, role, *counts)

    def _launches(self) -> tuple[KernelLaunch, ...]:
        of_programs: list[Counter[int]] = [Counter() for _ in self._log.grids]
        accesses = Counter(access.launch for access in self._log.accesses)
        used: dict[tuple[int, int, str, bool], set[int]] = defaultdict(set)
        for access in self._log.accesses:
            use = access.launch, access.program, access.tensor, access.action == "load"
            used[use].update(access.elements.tolist())
        for (launch, program, *_), elements in used.items():
            of_programs[launch][program] += len(elements)  # so loading a vector again and again is no work
        return tuple(
            KernelLaunch(name, grid, sum(counts.values()), max(counts.values(), default=0), accesses[number])
            for number, (name, grid, counts) in enumerate(zip(self._kernels, self._log.grids, of_programs, strict=True))
        )

    def _strays(self) -> tuple[StrayAccess, ...]:
        told = self._log.strays[:MOST_TOLD]
        return tuple(StrayAccess(s.action, s.count, s.line, s.nearest, s.beyond) for s in told)


def _told(conflicts: Sequence["Conflict"]) -> tuple[SharedElement, ...]:
    told = conflicts[:MOST_TOLD]
    return tuple(SharedElement(c.launch, c.tensor, c.element, c.programs, c.action) for c in told)


def refuse_large(form: torch.Tensor) -> None:
    """Raise `LauncherError` for a tensor that is too large here."""
    if form.numel() > MAX_ELEMENTS:
        raise LauncherError(f"A tensor of {form.numel():,} elements; at most {MAX_ELEMENTS:,} fit here.")


def _memory_for(form: torch.Tensor) -> torch.Tensor:
    """Return memory of the same shape, strides and dtype, in which each byte, also between elements, is 255."""
    refuse_large(form)
    extent = 1 + sum((n - 1) * s for n, s in zip(form.shape, form.stride(), strict=True)) if form.numel() else 0
    span = torch.full((extent * form.element_size(),), 255, dtype=torch.uint8).view(form.dtype)
    return span.as_strided(form.shape, form.stride())


def outputs_of(returned: object) -> Sequence[Operand]:
    """Return the tensors that a launcher returned, one or several; raises `LauncherError` for anything else."""
    outputs = returned if isinstance(returned, tuple | list) else (returned,)
    for output in outputs:
        if not isinstance(output, Operand):
            of_them = f"{len(outputs)} things, one of them " if len(outputs) > 1 else ""
            raise LauncherError(f"The launcher returned {of_them}a {type(output).__name__}; expected tensors.")
    return outputs


def grid_of(grid: Any, kernel: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the grid of a launch, as numbers; a function gets the launch's arguments."""
    if callable(grid):
        grid = grid({**dict(zip(kernel.arg_names, args, strict=False)), **kwargs})
    if not isinstance(grid, tuple | list):
        raise LauncherError(f"The grid is {grid!r:.40}; expected a tuple, as in `{kernel.__name__}[(4,)](...)`.")
    grid = tuple(grid)
    if not 1 <= len(grid) <= 3 or not all(type(size) is int and size >= 0 for size in grid):
        raise LauncherError(f"The grid is {grid!r}; expected one to three whole numbers, such as (4,).")
    return grid


def unwrapped(arg: Any) -> Any:
    """Return an argument of a launch as a kernel gets it; raises `LauncherError` for what no kernel takes."""
    if isinstance(arg, Operand):
        return arg._memory
    if isinstance(arg, tuple):
        return tuple(map(unwrapped, arg))
    if not isinstance(arg, bool | int | float | str | torch.dtype | None) and not _is_of_triton(arg):
        raise LauncherError(
            f"A kernel gets a {type(arg).__name__} of its launcher; pass tensors, numbers, dtypes, or a tuple of them."
        )
    return arg


def _is_of_triton(arg: Any) -> bool:
    import triton.language as tl
    from triton.runtime.jit import KernelInterface

    return isinstance(arg, tl.dtype | tl.constexpr | KernelInterface)
