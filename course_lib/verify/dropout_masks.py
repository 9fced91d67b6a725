"""Give two programs the same dropout masks, though they draw them in different ways.

A fused operator computes its mask from its own seed, so for the same `torch.manual_seed` it drops other elements than
`torch.nn.functional.dropout`. To compare the two, the candidate runs first, and its masks are recorded. Then the
reference runs, and each of its dropouts uses the next recorded mask.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

import course_lib.kernels  # noqa: F401  # registers the operators
from course_lib.errors import FusionError
from course_lib.kernels.dropout import dropout_factors
from course_lib.verify.observation import digest_of_random_state

_DROPOUT = (F.dropout, torch.dropout, torch.dropout_, torch.ops.aten.dropout, torch.ops.aten.dropout.default)
_FUSED = "bias_dropout_residual_layer_norm"
_FUSED_SIGNATURE = inspect.signature(
    lambda x, bias, residual, weight, layer_norm_bias, p=0.5, training=True, eps=1e-5: None
)
_DROPOUT_SIGNATURE = inspect.signature(F.dropout)


@dataclass(frozen=True)
class Mask:
    """The factors that one dropout multiplied by, and its rate."""

    p: float
    factors: torch.Tensor


class Masks(TorchFunctionMode):
    """Choose the factors of each dropout: draw and record new ones, or replay recorded ones."""

    def __init__(self, recorded: Sequence[Mask] | None = None, *, seed: int = 0) -> None:
        """Record masks drawn from `seed`, or replay those that another run recorded."""
        super().__init__()
        self.recorded: list[Mask] = []
        self.random_states: list[int] = []  # of torch, at each dropout: other draws stand before or after it
        self._replayed: Iterator[Mask] | None = None if recorded is None else iter(recorded)
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func in _DROPOUT:
            renamed = {{"train": "training"}.get(name, name): value for name, value in kwargs.items()}
            return self._dropout(func, _bound(_DROPOUT_SIGNATURE, args, renamed))
        if _is_fused(func):
            return self._fused(_bound(_FUSED_SIGNATURE, args, kwargs))
        return func(*args, **kwargs)

    def _dropout(self, func: Callable[..., Any], given: dict[str, Any]) -> Any:
        x = given["input"]
        if not given["training"] or given["p"] == 0:
            return x
        factors = self._factors(given["p"], x)
        return x.mul_(factors) if given["inplace"] or func is torch.dropout_ else x * factors

    def _fused(self, given: dict[str, Any]) -> Any:
        training = given.pop("training")
        if not training or given["p"] == 0:
            return torch.ops.course_lib.bias_dropout_residual_layer_norm_seeded(**given, seed=None)
        if self._replayed is not None:
            raise FusionError("Masks can be recorded from fused operators, and replayed only into PyTorch's dropout.")
        seed = torch.randint(2**31, (1,), generator=self._generator).to(given["x"].device)
        self.random_states.append(digest_of_random_state())
        self.recorded.append(Mask(given["p"], dropout_factors(seed, given["p"], given["x"])))
        return torch.ops.course_lib.bias_dropout_residual_layer_norm_seeded(**given, seed=seed)

    def _factors(self, p: float, x: torch.Tensor) -> torch.Tensor:
        self.random_states.append(digest_of_random_state())
        if self._replayed is not None:
            mask = next(self._replayed, Mask(0.0, torch.empty(0)))
            if mask.p != p or mask.factors.shape != x.shape:
                wanted, found = f"{p} of {tuple(x.shape)}", f"{mask.p} of {tuple(mask.factors.shape)}"
                raise FusionError(f"The reference drops a share of {wanted}, and the candidate of {found}.")
            return mask.factors.to(x)
        kept = torch.rand(x.shape, generator=self._generator, dtype=torch.float64) >= p
        factors = (kept.double() / (1 - p) if p < 1 else kept.double() * 0).to(x)
        self.recorded.append(Mask(p, factors))
        return factors


def _bound(signature: inspect.Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    bound = signature.bind(*args, **kwargs)
    bound.apply_defaults()
    return dict(bound.arguments)


def _is_fused(func: object) -> bool:
    packet = getattr(torch.ops.course_lib, _FUSED)
    return func is packet or func is packet.default
