"""Register operators with dropout as two operators: one draws a seed, the other is a function of the seed.

`course_lib::NAME` is the operator to call and to match in a graph. It takes `training`, draws a seed if dropout is
active, and calls `course_lib::NAME_seeded`, which computes the result and has the gradient. Both take tensors named x
and residual of shape (..., N), and others of shape (N,).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.kernels.dropout import draw_seed, dropout_factors
from course_lib.kernels.operands import check_probability, check_rows
from course_lib.kernels.transforms import register_autocast, register_vmap

DEFAULTS = (0.5, True, 1e-5)  # of p, training and eps, as in the schema
ROWS = ("x", "residual")
Gradients = Callable[..., tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class DropoutOperator:
    """Hold the name and the tensors of an operator with dropout, and register its rules."""

    name: str
    tensors: tuple[str, ...]
    # Without a seed; the gradient of x is then an empty tensor, because the outputs of an operator may not share
    # memory, and a copy would cost time.
    x_has_the_gradient_of_residual: bool = False

    def check(self, *tensors: torch.Tensor) -> None:
        """Raise `KernelError` for tensors that the operator does not take."""
        given = dict(zip(self.tensors, tensors, strict=True))
        rows = {name: given.pop(name) for name in ROWS}
        check_rows(self.name, rows, given)

    def register(self, seeded: Any, backward: Any, gradients: Gradients) -> None:
        """Define the operator that draws the seed; register derivative and rules of the seeded one.

        `backward` and `gradients` take the gradient of the result and all that `seeded` takes, and return the gradients
        of the tensors: one as an operator without a derivative, the other by operators of PyTorch that have one.
        """
        self._define(seeded)
        seeded.register_fake(self._fake)
        backward.register_fake(self._fake_backward)
        seeded.register_autograd(self._derivative(backward, gradients), setup_context=_setup_context)
        places = tuple(map(self.tensors.index, ROWS))
        register_vmap(seeded, rows=places)
        register_vmap(backward)
        for name in (self.name, f"{self.name}_seeded"):
            register_autocast(name, rows=(0, 1, 2), normalises=True)

    def _define(self, seeded: Callable[..., torch.Tensor]) -> None:
        tensors = ", ".join(f"Tensor {name}" for name in self.tensors)
        schema = f"({tensors}, float p=0.5, bool training=True, float eps=1e-05) -> Tensor"
        torch.library.define(f"course_lib::{self.name}", schema)

        @torch.library.impl(f"course_lib::{self.name}", ["CompositeImplicitAutograd", "FuncTorchBatchedDecomposition"])
        def with_fresh_seed(*given: Any) -> torch.Tensor:
            tensors, options = given[: len(self.tensors)], given[len(self.tensors) :]
            options += DEFAULTS[len(options) :]  # the dispatcher omits trailing defaults
            p, training, eps = options
            check_probability(self.name, p)
            seed = draw_seed(tensors[0]) if training and p > 0 else None
            return seeded(*tensors, seed, p, eps)

    def _fake(self, *given: Any) -> torch.Tensor:
        *tensors, _seed, _p, _eps = given
        self.check(*tensors)
        return torch.empty_like(tensors[0], memory_format=torch.contiguous_format)

    def _fake_backward(self, grad: torch.Tensor, *given: Any) -> tuple[torch.Tensor, ...]:
        *tensors, seed, _p, _eps = given
        found = [torch.empty_like(tensor, memory_format=torch.contiguous_format) for tensor in tensors]
        if self.x_has_the_gradient_of_residual and seed is None:
            found[0] = tensors[0].new_empty(0)
        return tuple(found)

    def _derivative(self, backward: Gradients, gradients: Gradients) -> Callable[..., tuple[torch.Tensor | None, ...]]:
        def derivative(ctx: Any, grad: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
            # Grad mode is on for second derivatives, and the backward operator has no derivative.
            function = gradients if torch.is_grad_enabled() else backward
            saved = ctx.saved_tensors  # read once, since activation checkpointing refuses a second read
            found = list(function(grad, *saved, ctx.p, ctx.eps))
            if self.x_has_the_gradient_of_residual and saved[-1] is None:
                found[0] = found[self.tensors.index("residual")]
            return *found, None, None, None

        return derivative


def add_dropped(
    branch: torch.Tensor, residual: torch.Tensor, seed: torch.Tensor | None, p: float
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return `dropout(branch) + residual`, and the factors of dropout; without a seed, dropout does nothing."""
    if seed is None:
        return branch + residual, None
    factors = dropout_factors(seed, p, branch)
    return branch * factors + residual, factors


def _setup_context(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    *tensors, ctx.p, ctx.eps = inputs
    ctx.save_for_backward(*tensors)  # with the seed instead of a mask
