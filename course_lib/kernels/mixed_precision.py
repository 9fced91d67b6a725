"""What the fused operators do under `torch.autocast`: give results of the dtype that the separate operators give.

A fused operator takes one dtype for all its tensors. Under autocast the parts of a model meet with different ones
(a linear layer gives bfloat16, its bias is float32), and PyTorch's own operators promote them. So do the rules here:
they convert all tensors to the widest dtype, and the result to what eager's last operator would return.
"""

import functools
from collections.abc import Callable, Sequence

import torch


def register_autocast(operator: str, rows: Sequence[int], *, normalises: bool) -> None:
    """Give the operator `course_lib::<operator>` its rules for autocast on the CPU and on CUDA.

    `rows` are the positions of the arguments that decide the dtype of the result by promotion: on CUDA, an operator
    that `normalises` gives float32 (or float64) whatever it is given, because autocast lists layer_norm and rms_norm
    among the operators that need it.
    """
    for device_type, key in (("cpu", "AutocastCPU"), ("cuda", "AutocastCUDA")):
        least = torch.float32 if normalises and device_type == "cuda" else None
        rule = functools.partial(_promoted, operator, tuple(rows), device_type, least)
        torch.library.impl(f"course_lib::{operator}", key)(_plain(rule))


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
