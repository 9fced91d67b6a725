"""Give several programs the same dropout masks, though they draw them by different operators.

PyTorch's dropout draws one number for each element, and a fused operator of the course draws one seed. Under
`ReplayedDraws` the k-th draw of every program follows from the same seed and k, and both drop the same elements. So a
program and its fused form can be compared while dropout is active, with gradients.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.kernels.dropout import dropout_factors

ATEN = torch.ops.aten


class ReplayedDraws(TorchDispatchMode):
    """Replace the k-th draw of a dropout by one that depends only on `seed`, on k, on the shape and on the rate.

    >>> rows = torch.ones(2, 5)
    >>> with ReplayedDraws(3):
    ...     first = torch.nn.functional.dropout(rows)
    >>> with ReplayedDraws(3):
    ...     torch.equal(first, torch.nn.functional.dropout(rows))
    True

    Other random numbers are left alone, and do not count as draws.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        replayed = _REPLAYED.get(func)
        if replayed is None:
            return func(*args, **(kwargs or {}))
        return replayed(self._seed, func, args, kwargs or {})

    def _seed(self, like: torch.Tensor) -> torch.Tensor:
        return torch.randint(2**63 - 1, (1,), generator=self._generator).to(like.device)


Seed = Callable[..., torch.Tensor]


def _bernoulli(seed: Seed, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """Fill a tensor with ones at the given probability, as PyTorch's dropout does with the noise that it multiplies."""
    noise, kept = args[0], args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    filled: torch.Tensor = noise.copy_(dropout_factors(seed(noise), 1 - kept, noise) != 0)
    return filled


def _native_dropout(seed: Seed, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, p, training = args
    if training is False or p == 0:
        return func(*args)
    factors = dropout_factors(seed(x), p, x)
    return x * factors, factors != 0


def _fused_seed(seed: Seed, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Give the seed of a fused operator; other random integers are drawn as usual."""
    drawn = func(*args, **kwargs)
    return seed(drawn) if drawn.shape == (1,) and drawn.dtype is torch.int64 else drawn


_REPLAYED: Mapping[Any, Callable[..., Any]] = {
    ATEN.bernoulli_.float: _bernoulli,
    ATEN.native_dropout.default: _native_dropout,
    ATEN.randint.default: _fused_seed,
}
