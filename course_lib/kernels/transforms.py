"""Register the rules of fused operators: shapes, derivatives, `torch.autocast` and `torch.vmap`.

A fused operator takes one dtype for all its tensors. Under autocast its inputs may have different ones (a linear layer
gives bfloat16, its bias is float32), and PyTorch's own operators promote them. The rules here do the same: they convert
all tensors to the widest dtype, and the result to the dtype of the last separate operator.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import torch

from course_lib.kernels.formula_derivatives import register_formula


def documented(operator: Any) -> Any:
    """Give a custom operator the docstring and the signature of its function, which `help` shows; return the operator.

    Otherwise `help` shows the text of PyTorch's class. Private: `_init_fn` is the function.
    """
    function = operator._init_fn
    operator.__doc__, operator.__signature__ = function.__doc__, inspect.signature(function)
    return operator


def register_autocast(operator: str, rows: Sequence[int], *, last: str = "") -> None:
    """Give the operator `course_lib::<operator>` its rules for autocast on the CPU and on CUDA.

    `rows` are the positions of the arguments whose promoted dtype is the dtype of the result. `last` is the last of the
    separate operators, such as "aten::layer_norm": where autocast lists it among those that compute in float32, the
    result is float32 (or float64) for all inputs. On CUDA, it lists layer_norm, and rms_norm in some versions only.
    """
    for device_type, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        least = torch.float32 if needs_float32(last, key) else None
        rule = functools.partial(_promoted, operator, tuple(rows), device_type, least)
        torch.library.impl(f"course_lib::{operator}", key)(_plain(rule))


def needs_float32(operator: str, key: str) -> bool:
    """Tell whether autocast, by its dispatch key, lists an operator such as "aten::layer_norm"; "" is in no list.

    PyTorch registers a kernel for each operator in a list, and of operators that normalise only in that for float32.
    """
    return bool(operator) and torch._C._dispatch_has_kernel_for_dispatch_key(operator, key)


def _plain(rule: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def kernel(*args: object) -> torch.Tensor:
        return rule(args)

    return kernel


def _promoted(
    operator: str, rows: tuple[int, ...], device_type: str, least: torch.dtype | None, args: tuple[object, ...]
) -> torch.Tensor:
    """Call the operator with all floating-point tensors in one dtype, and without autocast."""
    floating = {i: arg for i, arg in enumerate(args) if isinstance(arg, torch.Tensor) and arg.is_floating_point()}
    widest = _promote([arg.dtype for arg in floating.values()] + ([least] if least else []))
    of_result = widest if least else _promote([floating[i].dtype for i in rows])
    converted = [floating[i].to(widest) if i in floating else arg for i, arg in enumerate(args)]
    with torch.autocast(device_type, enabled=False):
        result: torch.Tensor = getattr(torch.ops.course_lib, operator).default(*converted)
    return result.to(of_result)


def _promote(dtypes: Sequence[torch.dtype]) -> torch.dtype:
    return functools.reduce(torch.promote_types, dtypes)


def register_vmap(operator: Any, rows: Sequence[int] = ()) -> None:
    """Give a custom operator its rule for `torch.vmap`.

    `rows` are the positions of its arguments of shape (..., N). If only these are mapped, one call computes all
    elements, because any number of dimensions may precede the last. Otherwise there is one call for each element: for a
    bias or a seed for each element, and for the backward operators, which have no `rows`.
    """

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        # Elements with one seed have one mask, so a seed needs one call for each element.
        has_seed = any(isinstance(arg, torch.Tensor) and arg.dtype == torch.int64 for arg in args)
        if not has_seed and all(position in rows for position, dim in enumerate(in_dims) if dim is not None):
            in_front = [_in_front(arg, in_dims[i], info.batch_size) if i in rows else arg for i, arg in enumerate(args)]
            return operator(*in_front), 0
        return _one_by_one(operator, info.batch_size, in_dims, args)

    operator.register_vmap(rule)


def _in_front(tensor: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _one_by_one(
    operator: Callable[..., Any], size: int, in_dims: tuple[int | None, ...], args: tuple[Any, ...]
) -> tuple[Any, Any]:
    def element(index: int) -> Any:
        return operator(
            *(arg if dim is None else arg.select(dim, index) for arg, dim in zip(args, in_dims, strict=True))
        )

    found = [element(index) for index in range(size)]
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found), 0
    return tuple(torch.stack(outputs) for outputs in zip(*found, strict=True)), (0,) * len(found[0])


def register_bias_operator(
    name: str,
    operator: Any,
    backward: Any,
    formula: Callable[..., torch.Tensor],
    gradients: Callable[..., Any],
    check: Callable[..., None],
) -> None:
    """Register all rules of an operator of x and a bias, whose result has the shape of x.

    `check` and `formula` take the arguments of the operator. `backward` and `gradients` take the gradient before that,
    and return the gradients of x and bias: `backward` is an operator without a derivative, and `gradients` uses
    differentiable operators of PyTorch.
    """

    def fake(x: torch.Tensor, bias: torch.Tensor, *options: Any) -> torch.Tensor:
        check(x, bias, *options)
        return torch.empty_like(x + bias)  # of the sum, since the strides of the result are those of the sum

    def checked_formula(x: torch.Tensor, bias: torch.Tensor, *options: Any) -> torch.Tensor:
        check(x, bias, *options)
        return formula(x, bias, *options)

    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
        x, bias, *ctx.options = inputs
        ctx.save_for_backward(x, bias)

    def derivative(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        function = gradients if torch.is_grad_enabled() else backward  # which has no derivative of its own
        return *function(grad, *ctx.saved_tensors, *ctx.options), *(None for _ in ctx.options)

    operator.__name__ = name  # torch.fx names a node after its target
    operator.register_fake(fake)
    operator.register_autograd(derivative, setup_context=setup_context)
    backward.register_fake(_fake_gradients)
    register_formula(operator, checked_formula)
    register_formula(backward, gradients)
    register_vmap(operator, rows=(0,))
    register_vmap(backward)
    register_autocast(name, rows=(0, 1))


def _fake_gradients(
    grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor, *options: object
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.empty_like(x, memory_format=torch.contiguous_format), torch.empty_like(bias)
