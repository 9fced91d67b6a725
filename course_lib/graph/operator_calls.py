"""Find the operators that an operator of ATen calls in its place: those that launch its kernels.

ATen writes many operators as calls of others, and such an operator has no kernel of its own: `masked_fill` copies its
operand and fills the copy. The dispatcher says which they are. They are found on stand-ins without data, so nothing is
computed, no random number is drawn, and fake tensors give the same calls as real ones.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch._C import DispatchKey
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_map_only

from course_lib.graph.memory import storage_of, tensors_in

_COMPOSITE = (
    DispatchKey.CompositeExplicitAutogradNonFunctional,
    DispatchKey.CompositeExplicitAutograd,
    DispatchKey.CompositeImplicitAutograd,
)

# Operators that launch no kernel: they query a tensor, or return uninitialised memory.
FREE = frozenset(
    """
    aten::_unsafe_view aten::_reshape_alias aten::lift_fresh aten::detach aten::is_same_size
    aten::sym_size aten::sym_stride aten::sym_numel aten::sym_storage_offset aten::empty aten::empty_like
    aten::empty_strided aten::new_empty aten::new_empty_strided aten::_assert_async aten::_version prim::device
    """.split()  # noqa: SIM905  # a list of so many names reads best as a block
)


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an operator that has a kernel; its tensors are stand-ins, which share memory as the real ones do."""

    operator: Any
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    result: object


def is_free(operator: Any) -> bool:
    """Return whether an operator launches no kernel."""
    returns = operator._schema.returns
    is_view = bool(returns) and all(r.alias_info is not None and not r.alias_info.is_write for r in returns)
    return is_view or torch.Tag.inplace_view in operator.tags or operator._schema.name in FREE


def calls_of(operator: torch._ops.OpOverload, args: Sequence[object], kwargs: Mapping[str, object]) -> tuple[Call, ...]:
    """Return what an operator calls in its place for these operands, in order, without what launches no kernel.

    An operator with a kernel for a CPU calls nothing here, whatever its kernel does inside. So does one of another
    library than ATen, and one whose calls depend on values. There are three exceptions: PyTorch's dropout and a loss
    that is reduced, which write as many numbers as their operands have and read them again, and the backward pass of a
    convolution, which computes each of its gradients with a kernel of its own.

        >>> [call.operator.__name__ for call in calls_of(torch.ops.aten.isinf.default, (torch.ones(3),), {})]
        ['abs.default', 'eq.Scalar']
    """
    program = _program(operator)
    if program is None:
        return ()
    recorder = _Recorder()
    with _disable_current_modes(), torch.no_grad():
        stand_ins = _StandIns()
        try:
            standing = tree_map_only(torch.Tensor, stand_ins.of, (tuple(args), dict(kwargs)))
            with recorder:
                program(*standing[0], **_on_meta(operator, standing[1]))
        except RuntimeError:  # it reads a value, or has no formula for tensors without data
            return ()
    return tuple(recorder.calls)


@functools.cache
def _program(operator: torch._ops.OpOverload) -> Callable[..., object] | None:
    """Return a function that makes the calls of an operator, or None if it is one kernel."""
    if is_free(operator):
        return None
    if operator in WRITTEN_OUT:
        return WRITTEN_OUT[operator]
    if (key := _composite_key(operator)) is not None:
        return functools.partial(operator._op_dk, key)
    return functools.partial(_reduced, operator) if _is_loss(operator) else None


def _is_loss(operator: torch._ops.OpOverload) -> bool:
    """Return whether an operator computes terms, and reduces them; the gradient of a loss begins with `grad_output`."""
    names = [argument.name for argument in operator._schema.arguments]
    is_loss = names[:2] == ["self", "target"] and "reduction" in names
    return operator.namespace == "aten" and is_loss and len(operator._schema.returns) == 1


def _composite_key(operator: torch._ops.OpOverload) -> DispatchKey | None:
    """Return the key of the kernel that is made of other operators; None if the operator has one of its own."""
    if operator.namespace != "aten" or operator.has_kernel_for_dispatch_key(DispatchKey.CPU):
        return None
    return next((key for key in _COMPOSITE if operator.has_kernel_for_dispatch_key(key)), None)


class _Recorder(TorchDispatchMode):
    """Record the operators with kernels that are called, also by other operators."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[Call] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        key, before = None if func in WRITTEN_OUT else _composite_key(func), len(self.calls)
        if key is None or (is_free(func) and key is not DispatchKey.CompositeImplicitAutograd):
            result = func(*args, **kwargs)
        else:
            with self:
                result = func._op_dk(key, *args, **kwargs)
        # An operator that makes one call is named in place of it; without any it has a kernel for all devices, as
        # `copy_` does. What meets no stand-in computes sizes.
        meets = any(tensor.is_meta for tensor in tensors_in((args, kwargs, result)))
        if len(self.calls) - before <= 1 and meets and not is_free(func):
            self.calls[before:] = [Call(func, args, kwargs, result)]
        return result


class _StandIns:
    """Tensors without data in place of others; those that share memory share that of their stand-ins."""

    def __init__(self) -> None:
        self._memory: dict[int, torch.UntypedStorage] = {}

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        number = storage_of(tensor)
        if number not in self._memory:
            self._memory[number] = torch.UntypedStorage(tensor.untyped_storage().nbytes(), device="meta")
        empty = torch.empty(0, dtype=tensor.dtype, device="meta")
        return empty.set_(self._memory[number], tensor.storage_offset(), tensor.size(), tensor.stride())


def _on_meta(operator: torch._ops.OpOverload, kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments with the device of a new tensor changed, so that it gets neither memory nor numbers."""
    devices = [argument.name for argument in operator._schema.arguments if argument.name == "device"]
    return {**kwargs, **dict.fromkeys(devices, "meta")}


def _reduced(loss: torch._ops.OpOverload, *args: Any, **kwargs: Any) -> None:
    """Compute a loss as its kernels do: they write one term for each element, and then reduce these."""
    named = dict(zip((argument.name for argument in loss._schema.arguments), args, strict=False)) | kwargs
    terms, reduction = loss(**{**named, "reduction": 0}), named.get("reduction", 1)
    if reduction:
        terms.mean() if reduction == 1 else terms.sum()


def _native_dropout(x: torch.Tensor, p: float, train: bool | None) -> None:
    mask = torch.empty_like(x, dtype=torch.bool)
    if train is False:
        x.clone()
        mask.fill_(True)
    else:
        mask.bernoulli_(1 - p)
        x.mul(mask).mul_(1.0)  # by a number that keeps what is left as large on average


def _native_dropout_backward(grad: torch.Tensor, mask: torch.Tensor, scale: float) -> None:
    grad * mask * scale


def _convolution_backward(
    grad: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, *args: Any, output_mask: Sequence[bool] | None = None
) -> None:
    *options, wanted = args if output_mask is None else (*args, output_mask)
    backward = torch.ops.aten.convolution_backward.default
    if wanted[0]:
        backward(grad, _form_of(x), weight, *options, [True, False, False])
    if wanted[1]:
        backward(grad, x, _form_of(weight), *options, [False, True, False])
    if wanted[2]:
        grad.sum([dim for dim in range(grad.dim()) if dim != 1])


def _form_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape that is one number in memory, in place of one that no kernel reads."""
    return tensor.new_empty(()).expand_as(tensor)


# As PyTorch writes these on a CPU.
WRITTEN_OUT: Mapping[object, Callable[..., object]] = {
    torch.ops.aten.native_dropout.default: _native_dropout,
    torch.ops.aten.native_dropout_backward.default: _native_dropout_backward,
    torch.ops.aten.convolution_backward.default: _convolution_backward,
}
