"""Try a launcher in this process, where an access outside of every tensor could end it."""

import copy
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.errors import KernelError
from course_lib.kernel_programs.access_log import AccessLog
from course_lib.kernel_programs.accesses import Stray
from course_lib.kernel_programs.races import Conflict

ATEN = torch.ops.aten
EMPTY = (ATEN.empty, ATEN.empty_like, ATEN.empty_strided, ATEN.new_empty, ATEN.new_empty_strided)


def try_launcher(launcher: Callable[..., Any], *args: object, **options: object) -> Any:
    """Return what a launcher returns; its kernels run under an `AccessLog`, so no stray access is carried out.

    Raises `KernelError` with the first access outside of every tensor, by program and line, with two programs that race
    for one element, and with the lines of masked loads without `other=` if the result depends on lanes outside of their
    masks.

    >>> try_launcher(copy, torch.ones(3))  # doctest: +SKIP
    tensor([1., 1., 1.])

    The log knows the tensors among the arguments and those that the launcher makes. It needs the interpreter of Triton
    and tensors on the CPU.
    """
    return run_logged(launcher, args, options)[0]


def run_logged(
    launcher: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any] | None = None
) -> tuple[Any, AccessLog]:
    """Return what `try_launcher` returns, and the log of the accesses; tensors are named "argument 1" and so on."""
    options = options or {}
    kept, kept_named = _copied(args, options)
    result, log = _logged(launcher, args, options)
    if log.strays:
        raise KernelError(_said(log.strays[0], len(log.strays)))
    if log.races.found:
        raise KernelError(_said_of_race(log.races.found[0]))

    def again(zero_at: Collection[int]) -> Any:
        return _logged(launcher, *_copied(kept, kept_named), zero_at=zero_at)[0]

    if lines := log.undefined.lines:
        defined = again(lines)
        if found := [line for line in lines if not _same(again([each for each in lines if each != line]), defined)]:
            raise KernelError(_said_of_undefined(found))
    return result, log


def _logged(
    launcher: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any], *, zero_at: Collection[int] = ()
) -> tuple[Any, AccessLog]:
    values = {**{f"argument {number + 1}": value for number, value in enumerate(args)}, **options}
    log = AccessLog(**{name: value for name, value in values.items() if isinstance(value, torch.Tensor)})
    log.undefined.zero_at = zero_at
    log.races.spoil = True
    with log, _NewTensors(log):
        return launcher(*args, **options), log


def _copied(args: Sequence[Any], options: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments, with tensors of the same values and strides in memory of their own."""
    return [_copy(value) for value in args], {name: _copy(value) for name, value in options.items()}


def _copy(value: Any) -> Any:
    return copy.deepcopy(value.detach()) if isinstance(value, torch.Tensor) else value


def _same(first: Any, second: Any) -> bool:
    """Tell whether two results hold the same tensors, NaN where the other has NaN."""
    if isinstance(first, tuple | list):
        return len(first) == len(second) and all(map(_same, first, second))
    if not isinstance(first, torch.Tensor):
        return True
    return torch.allclose(first.detach(), second.detach(), rtol=0, atol=0, equal_nan=True)


class _NewTensors(TorchDispatchMode):
    """Name each tensor with memory of its own that is made while the mode is open; NaN fills one that is empty."""

    def __init__(self, log: AccessLog) -> None:
        super().__init__()
        self._log = log

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = operator(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor) and made.is_meta:  # a form, without memory
            return made
        known = {tensor.untyped_storage().data_ptr() for tensor in self._log.tensors.values()}
        if isinstance(made, torch.Tensor) and made.numel() and made.untyped_storage().data_ptr() not in known:
            if operator.overloadpacket in EMPTY:  # so that what no program stored is the same in each run
                made.fill_(float("nan") if made.is_floating_point() else 1)
            name = f"new tensor {sum(name.startswith('new') for name in self._log.tensors) + 1}"
            self._log.add(name, made)
            if operator.overloadpacket not in EMPTY:
                self._log.filled.append(name)
        return made


def _said(stray: Stray, count: int) -> str:
    where = f", the first {stray.beyond} places behind the beginning of {stray.nearest}" if stray.nearest else ""
    more = f" There are {count - 1} more such accesses." if count > 1 else ""
    return (
        f"Program {stray.program}, line {stray.line} of the cell: a {stray.action} of {stray.count} elements outside "
        f"of every tensor{where}. It was not carried out. Which mask is missing, or which stride?{more}"
    )


def _said_of_race(race: Conflict) -> str:
    one, other = race.programs
    did = "reads" if race.action == "load" else "writes"
    return (
        f"Program {other} {did} element {race.element} of {race.tensor}, and program {one} of the same launch used it "
        "before. Programs run in any order on a GPU, and at the same time: let each write elements of its own, and "
        "combine them in another launch."
    )


def _said_of_undefined(lines: Sequence[int]) -> str:
    which = f"line {lines[0]}" if len(lines) == 1 else "lines " + ", ".join(map(str, sorted(lines)))
    return (
        f"The result depends on what no element gave, in {which} of the cell: `tl.load` with a mask and without "
        "`other=`: the lanes outside of the mask hold no defined value on a GPU; give `other=`."
    )
