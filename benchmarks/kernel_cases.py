"""Define the cases that are measured: each fused operator, the separate operators, and a peer's way to fuse them.

A case is one operator with the tensors of one size. Its programs compute the same real function:

- `eager`: PyTorch's separate operators;
- `compile`: the same under `torch.compile`;
- `peer`: the way of Megatron-LM's `fusions` folder, where there is one: formulas compiled one by one, with a backward
  formula written by hand for GELU, and LayerNorm left to PyTorch's own kernel;
- `kernel`: the operator of `course_lib.kernels`.
"""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn.functional as F

from course_lib.kernels import (
    bias_dropout_residual_layer_norm,
    bias_gelu,
    bias_silu,
    residual_layer_norm,
    scale_dropout_residual_rms_norm,
)

P, EPS = 0.1, 1e-5
Program = Callable[..., torch.Tensor]


@dataclasses.dataclass(frozen=True)
class Operator:
    """Describe an operator to measure: its programs, its tensors, and the least traffic."""

    name: str
    arguments: str  # one letter a tensor: r for one of shape (rows, columns), c for one of shape (columns,)
    eager: Program
    kernel: Program
    forward_elements: int  # that the forward pass reads and writes at least, for each element of a row
    backward_elements: int
    peer: Program | None = None

    def tensors(self, rows: int, columns: int, dtype: torch.dtype, device: str) -> list[torch.Tensor]:
        """Return the tensors for a call, which require gradients."""
        shapes = [(rows, columns) if letter == "r" else (columns,) for letter in self.arguments]
        return [torch.randn(shape, dtype=dtype, device=device).requires_grad_() for shape in shapes]

    def programs(self, compiler: Callable[[Program], Program]) -> Iterator[tuple[str, Program]]:
        """Yield the name of each way to compute the operator, and the program; `compiler` is e.g. `torch.compile`."""
        yield "eager", self.eager
        yield "compile", compiler(self.eager)
        if self.peer is not None:
            yield "peer", self.peer
        yield "kernel", self.kernel


def _gelu_tanh(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    z = x + bias
    return z * 0.5 * (1.0 + torch.tanh(0.7978845608 * z * (1 + 0.044715 * z * z)))


def _gelu_tanh_gradient(grad: torch.Tensor, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    z = x + bias
    tanh = torch.tanh(0.7978845608 * z * (1 + 0.044715 * z * z))
    inner = 0.7978845608 * (1 + 3 * 0.044715 * z * z)
    return grad * (0.5 * (1 + tanh) + 0.5 * z * (1 - tanh * tanh) * inner)


def bias_dropout_add(x: torch.Tensor, bias: torch.Tensor, residual: torch.Tensor, p: float) -> torch.Tensor:
    """Return `dropout(branch + bias) + residual`; without dropout where p is 0."""
    return residual + F.dropout(x + bias, p, training=p > 0)


def gelu_by_hand(compiler: Callable[[Program], Program]) -> Program:
    """Return bias + GELU as a function whose forward and backward formulas are compiled, each by itself."""
    forward, gradient = compiler(_gelu_tanh), compiler(_gelu_tanh_gradient)

    class BiasGelu(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x, bias)
            return forward(x, bias)

        @staticmethod
        def backward(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            found = gradient(grad, *ctx.saved_tensors)
            return found, found.sum(dim=0)

    return BiasGelu.apply


def operators(compiler: Callable[[Program], Program]) -> list[Operator]:
    """Return the operators to measure; `compiler` compiles the peers' programs."""
    return [*_activations(compiler), *_normalisations(compiler)]


def _activations(compiler: Callable[[Program], Program]) -> list[Operator]:
    return [
        Operator("bias_gelu", "rc", lambda x, b: F.gelu(x + b), bias_gelu, 2, 3),
        Operator(
            "bias_gelu_tanh",
            "rc",
            lambda x, b: F.gelu(x + b, approximate="tanh"),
            lambda x, b: bias_gelu(x, b, "tanh"),
            2,
            3,
            gelu_by_hand(compiler),
        ),
        Operator("bias_silu", "rc", lambda x, b: F.silu(x + b), bias_silu, 2, 3),
    ]


def _dropped(compiler: Callable[[Program], Program]) -> Program:
    add = compiler(bias_dropout_add)

    def program(x: torch.Tensor, b: torch.Tensor, r: torch.Tensor, w: torch.Tensor, lb: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(add(x, b, r, P), w.shape, w, lb, EPS)

    return program


def _normalisations(compiler: Callable[[Program], Program]) -> list[Operator]:
    return [
        Operator(
            "residual_layer_norm",
            "rrcc",
            lambda x, r, w, b: F.layer_norm(x + r, w.shape, w, b, EPS),
            lambda x, r, w, b: residual_layer_norm(x, r, w, b, EPS),
            3,
            4,
        ),
        Operator(
            "bias_dropout_residual_layer_norm",
            "rcrcc",
            lambda x, b, r, w, lb: F.layer_norm(r + F.dropout(x + b, P), w.shape, w, lb, EPS),
            lambda x, b, r, w, lb: bias_dropout_residual_layer_norm(x, b, r, w, lb, P, True, EPS),
            3,
            5,
            _dropped(compiler),
        ),
        Operator(
            "bias_residual_layer_norm",  # the operator above in evaluation
            "rcrcc",
            lambda x, b, r, w, lb: F.layer_norm(r + (x + b), w.shape, w, lb, EPS),
            lambda x, b, r, w, lb: bias_dropout_residual_layer_norm(x, b, r, w, lb, P, False, EPS),
            3,
            4,
        ),
        Operator(
            "scale_dropout_residual_rms_norm",
            "rcrc",
            lambda x, s, r, w: F.rms_norm(r + F.dropout(x * s, P), w.shape, w, EPS),
            lambda x, s, r, w: scale_dropout_residual_rms_norm(x, s, r, w, P, True, EPS),
            3,
            5,
        ),
    ]
