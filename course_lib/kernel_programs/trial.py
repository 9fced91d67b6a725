"""Try a launcher in this process, where an access outside of every tensor could end it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.errors import KernelError
from course_lib.kernel_programs.access_log import AccessLog, Stray


def try_launcher(launcher: Callable[..., Any], *args: object, **options: object) -> Any:
    """Return what a launcher returns; its kernels run under an `AccessLog`, so no stray access is carried out.

    Raises `KernelError` with the first access outside of every tensor, by program and line.

    >>> try_launcher(copy, torch.ones(3))  # doctest: +SKIP
    tensor([1., 1., 1.])

    The log knows the tensors among the arguments and those that the launcher makes. It needs the interpreter of Triton
    and tensors on the CPU.
    """
    values = {**{f"argument {number + 1}": value for number, value in enumerate(args)}, **options}
    given = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    with AccessLog(**given) as log, _NewTensors(log):
        result = launcher(*args, **options)
    if log.strays:
        raise KernelError(_said(log.strays[0], len(log.strays)))
    return result


class _NewTensors(TorchDispatchMode):
    """Name each tensor with memory of its own that is made while the mode is open."""

    def __init__(self, log: AccessLog) -> None:
        super().__init__()
        self._log = log

    def __torch_dispatch__(
        self, operator: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = operator(*args, **(kwargs or {}))
        known = {tensor.untyped_storage().data_ptr() for tensor in self._log.tensors.values()}
        if isinstance(made, torch.Tensor) and made.numel() and made.untyped_storage().data_ptr() not in known:
            self._log.add(f"new tensor {sum(name.startswith('new') for name in self._log.tensors) + 1}", made)
        return made


def _said(stray: Stray, count: int) -> str:
    where = f", the first {stray.beyond} places behind the beginning of {stray.nearest}" if stray.nearest else ""
    more = f" There are {count - 1} more such accesses." if count > 1 else ""
    return (
        f"Program {stray.program}, line {stray.line} of the cell: a {stray.action} of {stray.count} elements outside "
        f"of every tensor{where}. It was not carried out. Which mask is missing, or which stride?{more}"
    )
