"""Run Triton kernels whose text the host has checked, in Triton's interpreter, and record their accesses to memory.

This worker never runs the student's Python. The text that it runs is in the small language of
`autograder.host.artifacts.kernel_source`: kernels, and launchers that see the form of tensors and no values.
"""

import ast
import linecache
import sys
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, SimpleNamespace
from typing import Any, Literal

import torch

from autograder.protocol import Handlers, Result, Tensors
from autograder.protocol.requests.loads import (
    KernelLaunch,
    KernelsRun,
    LoadKernels,
    OperandTraffic,
    RunKernels,
    SharedElement,
    StrayAccess,
)
from autograder.worker.source import AnswerError
from autograder.worker.tensors import filled, to_raw, to_torch

MAX_PROGRAMS = 2048
MAX_ELEMENTS = 1 << 22
MOST_TOLD = 20  # strays and conflicts of one run
BUILTINS = {each.__name__: each for each in (abs, bool, float, int, isinstance, len, range, tuple)}
DTYPES = ("float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool")


class LauncherError(AnswerError):
    """A launcher asks for what the grader's interpreter does not run."""


class Operand:
    """A tensor as a launcher sees it: its form, and none of its values."""

    def __init__(self, name: str, memory: torch.Tensor, make: Callable[[torch.Tensor], "Operand"]) -> None:
        self.name = name
        self._memory, self._make = memory, make
        self.shape, self.ndim, self.dtype, self.device = memory.shape, memory.ndim, memory.dtype, memory.device
        self.numel, self.dim, self.element_size = memory.numel, memory.dim, memory.element_size
        self.size, self.stride, self.is_contiguous = memory.size, memory.stride, memory.is_contiguous

    def new_empty(self, *size: Any, **options: Any) -> "Operand":
        """Return a new tensor of this dtype."""
        return self._make(torch.empty(*size, **{"dtype": self.dtype, **options, "device": "meta"}))

    def __len__(self) -> int:
        return len(self._memory)

    def _refuse(self, *_: object) -> bool:
        raise LauncherError(
            "The launcher computes with a tensor. It sees shapes and strides only: what is computed "
            "belongs into a kernel."
        )

    __bool__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __pow__ = __matmul__ = __neg__ = __getitem__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse


def triton_answer(_: Callable[..., Any]) -> Handlers:
    """Return no handlers: kernels run where the student's Python is not, see `load_kernels`."""
    return {}


def load_kernels(request: LoadKernels, _: Tensors) -> Handlers:
    """Run the texts in one namespace; each request calls one of the launchers."""
    names = _namespace()
    for part in request.parts:
        filename = f"<{part.name}>"
        # Triton and tracebacks look for the lines of a kernel there
        linecache.cache[filename] = (len(part.text), None, part.text.splitlines(keepends=True), filename)
        tree = ast.parse(part.text)
        tree.body = [each for each in tree.body if not isinstance(each, ast.Import | ast.ImportFrom)]
        exec(compile(tree, filename, "exec", dont_inherit=True), names)
    constants = {name: value.value for name, value in names.items() if hasattr(value, "value")}
    names |= constants  # a constexpr times a block is no block in the interpreter, and is one in the compiler

    def run(request: RunKernels, tensors: Tensors) -> Result[KernelsRun]:
        return _Run(names).call(request, [to_torch(raw) for raw in tensors])

    return {RunKernels: run}


def _namespace() -> dict[str, Any]:
    from course_lib.kernel_programs import interpreter_of_triton, patch_language_for_good, use_interpreter

    use_interpreter()
    interpreter = interpreter_of_triton()
    import triton
    import triton.language as tl

    patch_language_for_good(interpreter)
    _refuse_truth_of_blocks(tl)

    class Kernel(interpreter.InterpretedFunction):  # type: ignore[name-defined]  # a class of an untyped library
        def run(self, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> None:
            _Run.current.launch(self, args, grid, kwargs)

        def run_on(self, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any]) -> None:
            try:
                super().run(*args, grid=grid, warmup=False, **kwargs)
            except interpreter.InterpreterError as error:
                raise _innermost(error, interpreter.InterpreterError) from None

    return {
        "__builtins__": BUILTINS | {"min": _of_blocks(tl.minimum, min), "max": _of_blocks(tl.maximum, max)},
        "__name__": "answer",
        "tl": tl,
        "triton": SimpleNamespace(jit=Kernel, cdiv=triton.cdiv, next_power_of_2=triton.next_power_of_2),
        "torch": _torch(),
    }


def _of_blocks(of_blocks: Callable[..., Any], of_numbers: Callable[..., Any]) -> Callable[..., Any]:
    """Return `min` or `max` as a kernel means it, whose operands may be blocks."""

    def chosen(*values: Any) -> Any:
        return (of_blocks if any(hasattr(value, "handle") for value in values) else of_numbers)(*values)

    return chosen


def _torch() -> SimpleNamespace:
    """Return what a launcher has of torch: dtypes, and new tensors."""
    return SimpleNamespace(
        Tensor=Operand,
        empty=lambda *size, **options: _Run.current.make(torch.empty(*size, **_on_meta(options))),
        empty_like=lambda like, **options: _Run.current.make(torch.empty_like(like._memory, **_on_meta(options))),
        zeros=lambda *size, **options: _Run.current.make(torch.empty(*size, **_on_meta(options)), zero=True),
        zeros_like=lambda like, **options: _Run.current.make(
            torch.empty_like(like._memory, **_on_meta(options)), zero=True
        ),
        **{name: getattr(torch, name) for name in DTYPES},
    )


def _on_meta(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "device": "meta"}


def _refuse_truth_of_blocks(language: Any) -> None:
    """Have a block raise where a kernel asks whether it is true; Triton compiles no such kernel, but interprets it."""
    truth = language.tensor.__bool__

    def refusing(block: Any) -> bool:
        if block.handle.data.size != 1 and sys._getframe(1).f_code.co_filename.startswith("<"):
            raise LauncherError(
                "A block of several elements has no truth value: use & and | in masks, and tl.where instead of if."
            )
        return bool(truth(block))

    language.tensor.__bool__ = refusing


def _innermost(error: BaseException, kind: type[BaseException]) -> BaseException:
    while isinstance(error, kind) and error.__cause__ is not None:
        error = error.__cause__
    return error


class _Run:
    """One call of a launcher: its tensors, its launches and the log of their accesses."""

    current: "_Run"

    def __init__(self, names: Mapping[str, Any]) -> None:
        from course_lib.kernel_programs import AccessLog

        self._names, self._log = names, AccessLog()
        self._operands: list[Operand] = []
        self._kernels: list[str] = []
        _Run.current = self

    def call(self, request: RunKernels, tensors: Sequence[torch.Tensor]) -> Result[KernelsRun]:
        inputs = [self._given(f"input {i}", tensor) for i, tensor in enumerate(tensors)]
        args, kwargs = filled(request.arguments, inputs)  # type: ignore[arg-type]  # operands in place of tensors
        with self._log:
            returned = self._names[request.launcher](*args, **kwargs)
        is_tuple = isinstance(returned, tuple | list)
        outputs = list(returned) if is_tuple else [returned]
        numbers = tuple(self._number(output, len(outputs)) for output in outputs)
        operands = tuple(self._traffic(i, len(inputs), numbers) for i in range(len(self._operands)))
        found = self._launches(), self._strays(), self._conflicts()
        body = KernelsRun(is_tuple, numbers, operands, *found, widest=self._log.widest)
        return Result(body, [to_raw(self._operands[i]._memory, "an output") for i in numbers])

    def make(self, form: torch.Tensor, *, zero: bool = False) -> Operand:
        """Return new memory of a form; unless it is zero, each byte of it is 255, which is NaN."""
        memory = _memory_for(form)
        if zero:
            memory.zero_()
        return self._add(f"new tensor {len(self._operands)}", memory)

    def launch(self, kernel: Any, args: Sequence[Any], grid: Any, kwargs: Mapping[str, Any]) -> None:
        """Run all programs of a grid, one after the other."""
        given = [_unwrapped(arg) for arg in args]
        named = {name: _unwrapped(arg) for name, arg in kwargs.items()}
        if callable(grid):
            grid = grid({**dict(zip(kernel.arg_names, args, strict=False)), **kwargs})
        grid = tuple(grid) if isinstance(grid, tuple | list) else (grid,)
        if not 1 <= len(grid) <= 3 or not all(type(size) is int and size >= 0 for size in grid):
            raise LauncherError(f"The grid is {grid!r}; expected one to three whole numbers, such as (4,).")
        programs = 1
        for size in grid:
            programs *= size
        if programs > MAX_PROGRAMS:
            raise LauncherError(
                f"The grid {grid} has {programs:,} programs; the interpreter takes a millisecond for each, and at most "
                f"{MAX_PROGRAMS:,} are run. Let each program take a block of elements."
            )
        self._kernels.append(kernel.fn.__name__)
        kernel.run_on(given, grid, named)

    def _given(self, name: str, tensor: torch.Tensor) -> Operand:
        memory = _memory_for(tensor)
        once = tuple(slice(0, 1) if stride == 0 else slice(None) for stride in tensor.stride())  # of an expanded one
        memory[once].copy_(tensor[once])
        return self._add(name, memory)

    def _add(self, name: str, memory: torch.Tensor) -> Operand:
        self._log.add(name, memory)
        self._operands.append(Operand(name, memory, self.make))
        return self._operands[-1]

    def _number(self, output: object, count: int) -> int:
        if not isinstance(output, Operand):
            of_them = f"{count} things, one of them " if count > 1 else ""
            raise LauncherError(f"The launcher returned {of_them}a {type(output).__name__}; expected tensors.")
        return next(i for i, each in enumerate(self._operands) if each is output)

    def _traffic(self, number: int, inputs: int, outputs: Sequence[int]) -> OperandTraffic:
        found = self._log.traffic(self._operands[number].name)
        role: Literal["input", "output", "scratch"] = (
            "output" if number in outputs else "input" if number < inputs else "scratch"
        )
        counts = (found.elements, found.loads, found.loaded, found.stores, found.stored, found.atomics)
        return OperandTraffic(found.tensor, role, *counts)

    def _launches(self) -> tuple[KernelLaunch, ...]:
        return tuple(KernelLaunch(name, grid) for name, grid in zip(self._kernels, self._log.grids, strict=True))

    def _strays(self) -> tuple[StrayAccess, ...]:
        told = self._log.strays[:MOST_TOLD]
        return tuple(StrayAccess(s.action, s.count, s.line, s.nearest, s.beyond) for s in told)

    def _conflicts(self) -> tuple[SharedElement, ...]:
        told = self._log.conflicts()[:MOST_TOLD]
        return tuple(SharedElement(c.launch, c.tensor, c.element, c.programs, c.action) for c in told)


def _memory_for(form: torch.Tensor) -> torch.Tensor:
    """Return memory of the same shape, strides and dtype, in which each byte, also between elements, is 255."""
    if form.numel() > MAX_ELEMENTS:
        raise LauncherError(f"A tensor of {form.numel():,} elements; at most {MAX_ELEMENTS:,} fit here.")
    extent = 1 + sum((n - 1) * s for n, s in zip(form.shape, form.stride(), strict=True)) if form.numel() else 0
    span = torch.full((extent * form.element_size(),), 255, dtype=torch.uint8).view(form.dtype)
    return span.as_strided(form.shape, form.stride())


def _unwrapped(arg: Any) -> Any:
    if isinstance(arg, Operand):
        return arg._memory
    if isinstance(arg, list | FunctionType):
        raise LauncherError("A kernel gets a list or a lambda; pass tensors, numbers, dtypes, or a tuple of them.")
    return tuple(map(_unwrapped, arg)) if isinstance(arg, tuple) else arg
