"""Give several programs the same dropout masks, though they draw them by different operators.

PyTorch's dropout draws one number for each element, and a fused operator of the course draws one seed. Under
`ReplayedDraws` the k-th draw of every program follows from the same seed and k, and both drop the same elements. So a
program and its fused form can be compared while dropout is active, with gradients.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, ClassVar, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.kernels.dropout import draw_seed, dropout_factors, uniform_numbers

ATEN = torch.ops.aten


class ReplayedDraws(TorchDispatchMode):
    """Replace the k-th draw of a dropout by one that depends only on `seed`, on k, on the shape and on the rate.

    >>> rows = torch.ones(2, 5)
    >>> with ReplayedDraws(3):
    ...     first = torch.nn.functional.dropout(rows)
    >>> with ReplayedDraws(3):
    ...     torch.equal(first, torch.nn.functional.dropout(rows))
    True

    Other random numbers are left alone, and do not count as draws. Kernels of Triton draw by the position of an
    element, as `position_factors` does. `by_position` has the numbers of the draws that do so in the other program;
    here they replace draws of PyTorch's dropout. Afterwards `drawn_by_position` has those of this program.
    """

    _entered: ClassVar[list["ReplayedDraws"]] = []

    def __init__(self, seed: int, by_position: Collection[int] = ()) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)
        self._by_position = frozenset(by_position)
        self._draws = 0
        self.drawn_by_position: list[int] = []

    def __enter__(self) -> Self:
        self._entered.append(self)
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._entered.remove(self)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        replayed = _REPLAYED.get(func)
        if replayed is None:
            return func(*args, **(kwargs or {}))
        return replayed(self, func, args, kwargs or {})

    def seed(self, like: torch.Tensor) -> torch.Tensor:
        """Return the seed of the next draw, an int64 tensor of one element."""
        self._draws += 1
        return torch.randint(2**63 - 1, (1,), generator=self._generator).to(like.device)

    def factors(self, p: float, like: torch.Tensor) -> torch.Tensor:
        """Return the factors of the next draw."""
        factors = position_factors if self._draws in self._by_position else dropout_factors
        return factors(self.seed(like), p, like)

    @classmethod
    def note_positions(cls) -> None:
        """Note in the mode that is open, if one is, that its last draw is used by position."""
        for each in cls._entered[-1:]:
            each.drawn_by_position.append(each._draws - 1)


def draw_seed_of_positions(like: torch.Tensor) -> torch.Tensor:
    """Return a fresh seed as `draw_seed` does, for a kernel that draws by the position of an element."""
    seed = draw_seed(like)
    ReplayedDraws.note_positions()
    return seed


def position_factors(seed: torch.Tensor, p: float, like: torch.Tensor) -> torch.Tensor:
    """Return the factors of dropout as a Triton kernel has them that keeps where `tl.rand(seed, position) >= p`.

    The position is the number of the element, counted row by row over the whole of `like`, whatever the strides.

    >>> position_factors(torch.tensor([7]), 0.5, torch.ones(3))
    tensor([0., 2., 0.])
    """
    positions = torch.arange(like.numel(), device=like.device).view(like.shape)
    kept = uniform_numbers(int(seed), positions) >= torch.tensor(p, dtype=torch.float32)
    return kept.to(like.dtype) / (1 - p)


def _bernoulli(replayed: ReplayedDraws, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.Tensor:
    """Fill a tensor with ones at the given probability, as PyTorch's dropout does with the noise that it multiplies."""
    noise, kept = args[0], args[1] if len(args) > 1 else kwargs.get("p", 0.5)
    filled: torch.Tensor = noise.copy_(replayed.factors(1 - kept, noise) != 0)
    return filled


def _native_dropout(replayed: ReplayedDraws, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    x, p, training = args
    if training is False or p == 0:
        return func(*args)
    factors = replayed.factors(p, x)
    return x * factors, factors != 0


def _fused_seed(replayed: ReplayedDraws, func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Give the seed of a fused operator; other random integers are drawn as usual."""
    drawn = func(*args, **kwargs)
    return replayed.seed(drawn) if drawn.shape == (1,) and drawn.dtype is torch.int64 else drawn


_REPLAYED: Mapping[Any, Callable[..., Any]] = {
    ATEN.bernoulli_.float: _bernoulli,
    ATEN.native_dropout.default: _native_dropout,
    ATEN.randint.default: _fused_seed,
}
