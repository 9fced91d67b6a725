"""What the fused operators do under `torch.vmap`, which maps a function over one dimension of its arguments."""

from collections.abc import Callable, Sequence
from typing import Any

import torch


def register_vmap(operator: Any, rows: Sequence[int] = ()) -> None:
    """Give a custom operator its rule for `torch.vmap`.

    `rows` are the positions of its arguments of shape (..., N). Where only these are mapped over, one call does it all,
    since any number of dimensions may stand before the last. Otherwise (a bias or a seed for each element, or a
    gradient for each, as in the backward operators, which name no `rows`) there is one call for each element.
    """

    def rule(info: Any, in_dims: tuple[int | None, ...], *args: Any) -> tuple[Any, Any]:
        # Elements that share a seed share a mask, which one call for all would not give them.
        has_seed = any(isinstance(arg, torch.Tensor) and arg.dtype == torch.int64 for arg in args)
        if not has_seed and all(position in rows for position, dim in enumerate(in_dims) if dim is not None):
            in_front = [_in_front(arg, in_dims[i], info.batch_size) if i in rows else arg for i, arg in enumerate(args)]
            return operator(*in_front), 0
        return _one_by_one(operator, info.batch_size, in_dims, args)

    operator.register_vmap(rule)


def _in_front(tensor: torch.Tensor, dim: int | None, size: int) -> torch.Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _one_by_one(
    operator: Callable[..., Any], size: int, in_dims: tuple[int | None, ...], args: tuple[Any, ...]
) -> tuple[Any, Any]:
    def element(index: int) -> Any:
        return operator(
            *(arg if dim is None else arg.select(dim, index) for arg, dim in zip(args, in_dims, strict=True))
        )

    found = [element(index) for index in range(size)]
    if isinstance(found[0], torch.Tensor):
        return torch.stack(found), 0
    return tuple(torch.stack(outputs) for outputs in zip(*found, strict=True)), (0,) * len(found[0])
