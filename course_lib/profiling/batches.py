"""The inputs of a model, at another batch size."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch

from course_lib.errors import ProfilingError

Inputs = Sequence[object] | Mapping[str, object]


def batch_size_of(inputs: Inputs) -> int:
    """Return the first dimension of the first tensor.

    Raises `ProfilingError` if the inputs hold none that has one.
    """
    if isinstance(inputs, torch.Tensor) or not isinstance(inputs, (Sequence, Mapping)):
        raise ProfilingError(
            f"inference_report got a {type(inputs).__name__} as inputs; it expects a list of arguments, such as [x], "
            "or a dict of arguments by name."
        )
    for value in _values(inputs):
        if isinstance(value, torch.Tensor) and value.dim() and len(value):
            return len(value)
    raise ProfilingError("inference_report got inputs without a tensor that has a first dimension, which is the batch.")


def resized(inputs: Inputs, size: int) -> Inputs:
    """Return the inputs with the batch repeated or cut to this size; the same inputs if it has the size already.

        >>> resized([torch.tensor([1, 2]), "as it is"], 3)
        [tensor([1, 2, 1]), 'as it is']

    Raises `ProfilingError` for a size below 1.
    """
    given = batch_size_of(inputs)
    if size < 1:
        raise ProfilingError(f"inference_report got a batch size of {size}; it expects 1 or more.")
    if size == given:
        return inputs
    rows = torch.arange(size) % given
    if isinstance(inputs, Mapping):
        return {name: _taken(value, rows, given) for name, value in inputs.items()}
    return [_taken(value, rows, given) for value in inputs]


def call_with(model: Callable[..., object], inputs: Inputs) -> Callable[[], object]:
    """Return the model's call on these inputs, as a call without arguments."""
    return partial(model, **inputs) if isinstance(inputs, Mapping) else partial(model, *inputs)


def device_of(inputs: Inputs) -> str:
    """Return where the first tensor lies."""
    return next(str(value.device) for value in _values(inputs) if isinstance(value, torch.Tensor))


def _values(inputs: Inputs) -> Sequence[object]:
    return list(inputs.values()) if isinstance(inputs, Mapping) else list(inputs)


def _taken(value: object, rows: torch.Tensor, given: int) -> object:
    if not isinstance(value, torch.Tensor) or not value.dim() or len(value) != given:
        return value
    return value[rows.to(value.device)]
