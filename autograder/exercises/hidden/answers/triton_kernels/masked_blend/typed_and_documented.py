"""Blend with the names a Triton user would take."""

import torch
import triton
import triton.language as tl


@triton.jit
def _lerp(a, b, w):
    """Between a and b."""
    return a + w * (b - a)


@triton.jit
def _blend_kernel(
    x_ptr: tl.tensor,
    y_ptr: tl.tensor,
    out_ptr: tl.tensor,  # pointers
    t: tl.float32,
    n_elements: tl.int32,
    sx,
    sy,
    BLOCK_SIZE: tl.constexpr = 256,
):
    """Docstring."""
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets * sx, mask=mask, other=0.0, eviction_policy="evict_first", cache_modifier=".cg")
    y = tl.load(y_ptr + offsets * sy, mask=mask, other=0.0)
    tl.store(out_ptr + offsets, _lerp(x, y, t), mask=mask)


def blend(x: torch.Tensor, y: torch.Tensor, t: float) -> torch.Tensor:
    """Launcher."""
    n_elements = x.numel()
    output = torch.empty(n_elements, dtype=x.dtype, device=x.device)
    grid = lambda meta: (triton.cdiv(n_elements, meta["BLOCK_SIZE"]),)
    _blend_kernel[grid](
        x, y, output, t, n_elements, *x.stride(), *y.stride(), BLOCK_SIZE=1024, num_warps=4, num_stages=2
    )
    return output
