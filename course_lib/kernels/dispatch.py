"""Check the operands of a fused operator, and choose its implementation: our kernel on a GPU, or a body for the CPU.

Which body, the compiled one or operators of PyTorch, `course_lib.kernels.cpu.library` decides.

The choice is made each time an operator runs, so a graph with the operator works on every machine. It depends only on
the machine, the dtype and the length of a row, so forward and backward pass make the same choice.
"""

import functools
import importlib.util
import os
import warnings
from collections.abc import Mapping

import torch

from course_lib.errors import KernelError

MAX_COLUMNS = 8192  # a kernel keeps a whole row in registers
_INTERPRETS = os.environ.get("TRITON_INTERPRET") == "1"
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def runs_as_kernel(operator: str, x: torch.Tensor) -> bool:
    """Return whether `operator` runs our Triton kernel on `x`; if it does not on a GPU, warn once with the reason.

    With TRITON_INTERPRET=1 in the environment when Python starts, tensors on the CPU use the kernel too, in Triton's
    interpreter. If it is set later, for other kernels, they do not.
    """
    if not x.is_cuda:
        return x.is_cpu and _INTERPRETS and _obstacle(x) is None
    obstacle = _obstacle(x)
    if obstacle is not None:
        _say_once(f"{operator} runs as separate PyTorch operators, right but no faster: {obstacle}.")
    return obstacle is None


def _obstacle(x: torch.Tensor) -> str | None:
    """Return the reason why the kernel cannot run on `x`, or None if it can."""
    if not _has_triton():
        return "Triton is not installed; `pip install triton` for the version that this torch asks for"
    if x.dtype not in _DTYPES:
        return f"its kernel is written for float32, float16 and bfloat16, and it was given {x.dtype}"
    if x.shape[-1] > MAX_COLUMNS:
        return f"its kernel takes rows of at most {MAX_COLUMNS:,} elements, and it was given {x.shape[-1]:,}"
    if x.is_cuda:
        return _obstacle_of_device(x.device, x.dtype)
    return None


@functools.cache
def _obstacle_of_device(device: torch.device, dtype: torch.dtype) -> str | None:
    capability = torch.cuda.get_device_capability(device)
    least = (8, 0) if dtype == torch.bfloat16 else (7, 0)
    if capability < least:
        return f"its kernel needs compute capability {least[0]}.{least[1]} for {dtype}, and this GPU has {capability}"
    return None


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


@functools.cache
def _say_once(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=2)


def check_bias(operator: str, x: torch.Tensor, bias: torch.Tensor) -> None:
    """Raise `KernelError` unless `bias` has one entry for each entry of the last dimension of `x`.

    A fused kernel reads `bias[column]` beside `x[row, column]`, so it supports this one way to broadcast,
    and one dtype for both.
    """
    if x.ndim == 0 or bias.ndim != 1 or bias.shape[0] != x.shape[-1]:
        swapped = x.ndim == 1 and bias.ndim > 1 and x.shape[0] == bias.shape[-1]
        advice = "x and bias are swapped." if swapped else "Add other biases with `+`."
        raise KernelError(
            f"{operator} got x of shape {tuple(x.shape)} and bias of shape {tuple(bias.shape)}; "
            f"it expects a bias of one dimension, as long as the last dimension of x. {advice}"
        )
    if x.dtype != bias.dtype or not x.dtype.is_floating_point:
        raise KernelError(
            f"{operator} got x of {x.dtype} and bias of {bias.dtype}; "
            "it expects one floating-point dtype for both. Convert one of them with `.to(...)` first."
        )


def sum_to_bias(grad: torch.Tensor) -> torch.Tensor:
    """Return the gradient of the bias: the gradient of `x + bias`, summed over all dimensions but the last."""
    return grad.sum(dim=tuple(range(grad.ndim - 1))) if grad.ndim > 1 else grad.clone()


def check_rows(operator: str, rows: Mapping[str, torch.Tensor], columns: Mapping[str, torch.Tensor]) -> None:
    """Raise `KernelError` unless all `rows` have one shape (..., N), all `columns` shape (N,), and all one dtype.

    A fused kernel reads one row of each of `rows` at a time, and beside it all of `columns`. So it supports this one
    way to broadcast, and one floating-point dtype for all. Its sums use float32 or higher precision, whatever the
    dtype.
    """
    first = next(iter(rows.values()))
    shape, length, dtype = first.shape, first.shape[-1:], first.dtype
    fits = len(shape) > 0 and all(tensor.shape == shape for tensor in rows.values())
    fits = fits and all(tensor.shape == length for tensor in columns.values())
    one_dtype = all(tensor.dtype == dtype for tensor in (*rows.values(), *columns.values()))
    if not (fits and shape[-1] > 0 and one_dtype and dtype.is_floating_point):
        raise KernelError(f"{operator} got {_what_is_wrong(rows, columns, fits=fits, is_empty=shape[-1:] == (0,))}")


def _what_is_wrong(
    rows: Mapping[str, torch.Tensor], columns: Mapping[str, torch.Tensor], *, fits: bool, is_empty: bool
) -> str:
    tensors = {**rows, **columns}
    given = " and ".join(f"{name} of shape {tuple(tensor.shape)}" for name, tensor in tensors.items())
    if not fits:
        return (
            f"{given}; it expects {', '.join(rows)} of one shape (..., N) and {', '.join(columns)} of shape (N,). "
            "Expand or reshape them first."
        )
    if is_empty:
        return f"{given}; it expects rows of at least one element, since it normalises them."
    given = " and ".join(f"{name} of {tensor.dtype}" for name, tensor in tensors.items())
    return f"{given}; it expects one floating-point dtype for all. Convert with `.to(...)` first."


def check_probability(operator: str, p: float) -> None:
    """Raise `KernelError` unless `p` is a probability of dropout."""
    if not 0 <= p <= 1:
        raise KernelError(f"{operator} got p={p!r}; it expects a probability between 0 and 1.")
