"""Choose the implementation of a fused operator: our kernel on a GPU, or the separate operators of PyTorch.

The choice is made each time an operator runs, so a graph with the operator works on every machine. It depends only on
the machine, the dtype and the length of a row, so forward and backward pass choose alike.
"""

import functools
import importlib.util
import os
import warnings

import torch

MAX_COLUMNS = 8192  # a kernel keeps a whole row in registers
_DTYPES = (torch.float32, torch.float16, torch.bfloat16)


def runs_as_kernel(operator: str, x: torch.Tensor) -> bool:
    """Tell whether `operator` shall run our Triton kernel on `x`; if not on a GPU, warn once with the reason.

    With TRITON_INTERPRET=1 in the environment, tensors on the CPU take the kernel too, one Python step at a time.
    """
    if not x.is_cuda:
        return x.device.type == "cpu" and interpreting() and _obstacle(x) is None
    obstacle = _obstacle(x)
    if obstacle is not None:
        _say_once(f"{operator} runs as separate PyTorch operators, right but no faster: {obstacle}.")
    return obstacle is None


def interpreting() -> bool:
    """Tell whether Triton kernels are to be run by Triton's interpreter, which needs no GPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


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
