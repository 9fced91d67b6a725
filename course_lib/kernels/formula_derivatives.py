"""Differentiate a fused operator by its formula where its own derivative does not reach.

A custom operator of PyTorch has a derivative for `backward()` only. In forward mode PyTorch would silently return a
derivative of zero, and `torch.func.grad`, `vjp`, `jacrev` and `hessian` would raise. In these cases the operator is
computed by its formula, that is by operators of PyTorch, which have every derivative.

This module uses private names of PyTorch. They lie here only, and `tests/course_lib/kernels/test_derivatives.py` fails
if one of them moves.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch._library.autograd import make_autograd_impl
from torch.autograd import forward_ad

# PyTorch registers the derivative of a custom operator for all devices at once; a key of one device comes first.
_KEYS = ("AutogradCPU", "AutogradCUDA", "AutogradXPU", "AutogradMPS", "AutogradMeta")
_LIBRARY = torch.library.Library("course_lib", "FRAGMENT")  # it lives as long as the operators


def register_formula(operator: Any, formula: Callable[..., Any]) -> None:
    """Let `formula` compute a custom operator in forward mode, and within the transforms of `torch.func`.

    `formula` takes the arguments of the operator, and has the same defaults. It checks them as the operator does.
    """
    overload = operator._opoverload
    ordinary = make_autograd_impl(overload, operator)
    body = operator._backend_fns[None]

    def derivative(keyset: Any, *args: Any) -> Any:
        if _may_transform() and any(is_transformed(arg) for arg in args if isinstance(arg, torch.Tensor)):
            return formula(*args)
        if _is_for_the_cpu(keyset) and not (torch.is_grad_enabled() and torch._C._any_requires_grad(*args)):
            return body(*args)  # as the ordinary way does in the end, in half the time
        return ordinary(keyset, *args)

    for key in _KEYS:
        _LIBRARY.impl(overload, derivative, key, with_keyset=True)


def _may_transform() -> bool:
    """Return whether `torch.func` or forward mode is at work at all; asking each tensor takes longer."""
    return forward_ad._current_level >= 0 or torch._C._functorch.peek_interpreter_stack() is not None


def _is_for_the_cpu(keyset: Any) -> bool:
    """Return whether nothing comes between autograd and the body for a CPU: no mode, subclass or functionalisation."""
    return (keyset & torch._C._after_ADInplaceOrView_keyset).highestPriorityTypeId() == torch._C.DispatchKey.CPU


def is_transformed(tensor: torch.Tensor) -> bool:
    """Return whether `torch.func` differentiates this tensor, or forward mode gives it a tangent."""
    if torch._C._functorch.is_gradtrackingtensor(tensor):
        return True
    return forward_ad._current_level >= 0 and forward_ad.unpack_dual(tensor).tangent is not None
