"""Compute dropout masks as a function of a seed, so that the backward pass recomputes the mask instead of reading it.

Ordinary dropout writes a mask in the forward pass and reads it in the backward pass, one byte for each element. A fused
operator saves the seed instead, which is eight bytes, and recomputes the mask. The seed is drawn from PyTorch's random
numbers, so `torch.manual_seed` repeats a run, and activation checkpointing repeats a mask.

The generator is Philox4x32 with seven rounds (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
1, 2, 3", 2011; the fewest rounds that pass all their tests). It has no state: four random words are a function of a
key, here the seed, and of a counter, here the position of four neighbours in a row. So each GPU thread computes its own
words independently, and the formula below gives the same words on any device.

A fused operator with dropout is registered as two operators. `course_lib::NAME` is the one to call and to match in a
graph. It takes `training`, draws a seed if dropout is active, and calls `course_lib::NAME_seeded`, which computes the
result and has the gradient. Both take tensors named x and residual of shape (..., N), and others of shape (N,).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from course_lib.kernels.dispatch import check_probability, check_rows
from course_lib.kernels.formula_derivatives import register_formula
from course_lib.kernels.transforms import register_autocast, register_vmap

ROUNDS = 7
TRITON_ROUNDS, TRITON_SCALE = 10, 4.6566127342e-10  # of `tl.rand`, as `triton/language/random.py` has them
_SEEDS = 2**63 - 1
WORD = 2**32 - 1
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_KEY_STEPS = (0x9E3779B9, 0xBB67AE85)


def draw_seed(like: torch.Tensor) -> torch.Tensor:
    """Return a fresh seed: an int64 tensor of one element, on the device of `like`.

    It is a tensor, since a Python number would make the host wait for the device, and would be constant in a CUDA
    graph.
    """
    return torch.randint(_SEEDS, (1,), dtype=torch.int64, device=like.device)


def dropout_factors(seed: torch.Tensor, p: float, like: torch.Tensor) -> torch.Tensor:
    """Return the factors of dropout: 0 with probability `p`, else 1 / (1 − p), in the shape and dtype of `like`.

    The same seed, shape and `p` give the same zeros, whatever the strides, the dtype and the device.
    """
    if p == 1:
        return torch.zeros(like.shape, dtype=like.dtype, device=like.device)
    kept = _random_words(seed, like) >= threshold(p)
    return kept.to(like.dtype) / (1 - p)


def threshold(p: float) -> int:
    """Return the threshold that a random word of 32 bits is below with probability `p`."""
    return min(round(p * 2**32), WORD)


def _random_words(seed: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return a random word of 32 bits for each element of `like`, as int64."""
    columns = like.shape[-1]
    rows = like.numel() // max(columns, 1)
    groups = -(-columns // 4)
    row = torch.arange(rows, device=like.device)[:, None]
    group = torch.arange(groups, device=like.device)
    zero = torch.zeros_like(row)
    words = philox((group, row & WORD, row >> 32, zero), (seed & WORD, (seed >> 32) & WORD))
    # (rows, groups, 4) → (rows, 4 · groups), of which the last group may exceed the columns
    return torch.stack(torch.broadcast_tensors(*words), dim=-1).flatten(1)[:, :columns].reshape(like.shape)


def uniform_numbers(seed: int, positions: torch.Tensor) -> torch.Tensor:
    """Return a number in [0, 1) for each position, in float32: the numbers of Triton's `tl.rand(seed, positions)`.

    Triton takes ten rounds, the position as the counter, and the first word without its sign; `positions` are int64.

    >>> uniform_numbers(7, torch.arange(3))
    tensor([0.0908, 0.8139, 0.0122])
    """
    zero = torch.zeros_like(positions)
    counter = (positions & WORD, (positions >> 32) & WORD, zero, zero)
    words = philox(counter, (seed & WORD, (seed >> 32) & WORD), rounds=TRITON_ROUNDS)[0]
    without_sign = torch.where(words > WORD >> 1, WORD - words, words)
    return without_sign.float() * TRITON_SCALE


def philox(
    counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any], *, rounds: int = ROUNDS
) -> tuple[Any, Any, Any, Any]:
    """Return four random words, given four words of a counter and two of a key: int64 tensors that hold 32 bits.

    >>> zero = torch.tensor(0)
    >>> [int(word) for word in philox((zero, zero, zero, zero), (0, 0), rounds=10)]
    [1713891541, 3781805453, 3159862348, 2600524760]

    Arrays of NumPy are taken as well.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(rounds):
        # The product has 64 bits; int64 holds all of them, though the sign may differ.
        a, b = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        c0, c1 = ((b >> 32) & WORD) ^ c1 ^ k0, b & WORD
        c2, c3 = ((a >> 32) & WORD) ^ c3 ^ k1, a & WORD
        k0, k1 = (k0 + _KEY_STEPS[0]) & WORD, (k1 + _KEY_STEPS[1]) & WORD
    return c0, c1, c2, c3


DEFAULTS = (0.5, True, 1e-5)  # of p, training and eps, as in the schema
ROWS = ("x", "residual")
Gradients = Callable[..., tuple[torch.Tensor, ...]]


@dataclass(frozen=True)
class DropoutOperator:
    """Hold the name and the tensors of an operator with dropout, and register its rules."""

    name: str
    tensors: tuple[str, ...]
    last: str  # of the separate operators, as `register_autocast` takes it
    # This holds without a seed. The gradient of x is then an empty tensor, because the outputs of an operator may
    # not share memory, and a copy would cost time.
    x_has_the_gradient_of_residual: bool = False

    def check(self, *tensors: torch.Tensor) -> None:
        """Raise `KernelError` for tensors that the operator does not take."""
        given = dict(zip(self.tensors, tensors, strict=True))
        rows = {name: given.pop(name) for name in ROWS}
        check_rows(self.name, rows, given)

    def register(self, seeded: Any, backward: Any, formula: Callable[..., torch.Tensor], gradients: Gradients) -> None:
        """Define the operator that draws the seed; register derivative and rules of the seeded one.

        `formula` takes what `seeded` takes, and computes it by differentiable operators of PyTorch. `backward` and
        `gradients` take the gradient of the result and all that `seeded` takes, and return the gradients of the
        tensors: `backward` is an operator without a derivative, and `gradients` uses differentiable operators.
        """
        self._define(seeded)
        seeded.register_fake(self._fake)
        backward.register_fake(self._fake_backward)
        seeded.register_autograd(self._derivative(backward, gradients), setup_context=_setup_context)
        register_formula(seeded, self._checked(formula))
        register_formula(backward, self._as_backward(gradients))
        places = tuple(map(self.tensors.index, ROWS))
        register_vmap(seeded, rows=places)
        register_vmap(backward)
        for name in (self.name, f"{self.name}_seeded"):
            register_autocast(name, rows=(0, 1, 2), last=self.last)

    def _checked(self, formula: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
        def checked(*given: Any) -> torch.Tensor:
            self.check(*given[: len(self.tensors)])
            return formula(*given)

        return checked

    def _as_backward(self, gradients: Gradients) -> Gradients:
        """Return `gradients` with the results that the backward operator has."""

        def found(grad: torch.Tensor, *given: Any) -> tuple[torch.Tensor, ...]:
            first, *others = gradients(grad, *given)
            without_x = self.x_has_the_gradient_of_residual and given[len(self.tensors)] is None
            return given[0].new_empty(0) if without_x else first, *others

        return found

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
