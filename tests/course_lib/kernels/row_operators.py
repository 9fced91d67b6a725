"""The operators that normalise rows, each beside the PyTorch operators that it stands for."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from course_lib.kernels import (
    bias_dropout_residual_layer_norm,
    residual_layer_norm,
    scale_dropout_residual_rms_norm,
)

Tensors = tuple[torch.Tensor, ...]
EPS = 1e-5


@dataclass(frozen=True)
class RowOperator:
    """One operator: how to call it, with and without a seed, and what it must be equal to."""

    name: str
    arguments: str  # one letter a tensor: r for one of shape (..., N), c for one of shape (N,)
    fused: Callable[[Tensors, float, bool], torch.Tensor]
    eager: Callable[[Tensors, torch.Tensor | None], torch.Tensor]  # what dropout multiplies with, if anything
    drops: bool = True

    def shares(self, *given: float) -> tuple[float, ...]:
        """Return the shares of dropout to try: all that are given, or one if the operator drops nothing."""
        return given if self.drops else given[:1]

    def tensors(self, rows: Callable[[], torch.Tensor], dtype: torch.dtype = torch.float32) -> Tensors:
        """Return tensors to call with, that ask for gradients; `rows` makes one of shape (..., N)."""
        made = [rows() if letter == "r" else torch.randn(rows().shape[-1]) for letter in self.arguments]
        return tuple(_in_dtype(tensor, dtype).requires_grad_() for tensor in made)

    def seeded(self, tensors: Tensors, seed: torch.Tensor | None, p: float) -> torch.Tensor:
        """Call the operator that is a function of its inputs alone."""
        operator = getattr(torch.ops.course_lib, self.name + ("_seeded" if self.drops else ""))
        return operator(*tensors, *((seed, p) if self.drops else ()), EPS)


def _in_dtype(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Convert, and keep the strides, which `.to` changes for views that skip or repeat elements."""
    like = torch.empty_strided((_span(tensor),), (1,), dtype=dtype).zero_()
    target = like.as_strided(tensor.shape, tensor.stride())
    if 0 not in tensor.stride():
        return target.copy_(tensor)
    like.copy_(torch.randn(like.shape))
    return target


def _span(tensor: torch.Tensor) -> int:
    return 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if size)


def _layer_norm(tensors: Tensors, factors: torch.Tensor | None) -> torch.Tensor:
    x, bias, residual, weight, layer_norm_bias = tensors
    dropped = x + bias if factors is None else (x + bias) * factors
    return F.layer_norm(residual + dropped, weight.shape, weight, layer_norm_bias, EPS)


def _rms_norm(tensors: Tensors, factors: torch.Tensor | None) -> torch.Tensor:
    x, scale, residual, weight = tensors
    dropped = x * scale if factors is None else x * scale * factors
    return F.rms_norm(residual + dropped, weight.shape, weight, EPS)


ROW_OPERATORS = (
    RowOperator(
        "residual_layer_norm",
        "rrcc",
        lambda tensors, p, training: residual_layer_norm(*tensors, EPS),
        lambda tensors, factors: F.layer_norm(tensors[0] + tensors[1], tensors[2].shape, *tensors[2:], EPS),
        drops=False,
    ),
    RowOperator(
        "bias_dropout_residual_layer_norm",
        "rcrcc",
        lambda tensors, p, training: bias_dropout_residual_layer_norm(*tensors, p, training, EPS),
        _layer_norm,
    ),
    RowOperator(
        "scale_dropout_residual_rms_norm",
        "rcrc",
        lambda tensors, p, training: scale_dropout_residual_rms_norm(*tensors, p, training, EPS),
        _rms_norm,
    ),
)

LAYOUTS: dict[str, Callable[[], torch.Tensor]] = {
    "matrix": lambda: torch.randn(3, 5),
    "vector": lambda: torch.randn(5),
    "four_dimensions": lambda: torch.randn(2, 3, 1, 5),
    "permuted": lambda: torch.randn(5, 4, 3).permute(2, 1, 0),
    "every_second_row": lambda: torch.randn(8, 5)[::2],
    "every_second_column": lambda: torch.randn(4, 10)[:, ::2],
    "expanded": lambda: torch.randn(1, 5).expand(4, 5),
    "one_column": lambda: torch.randn(4, 1),
    "empty_batch": lambda: torch.randn(0, 5),
    "many_rows": lambda: torch.randn(130, 17),
    "rows_of_a_wider_matrix": lambda: torch.randn(4, 2, 99)[..., 3:70],
}
