"""Define eight small programs on a matrix, for predicting the result of a capture.

TorchScript compiles their source text, so their text equals that in the notebook.
"""

from collections.abc import Callable, Mapping
from typing import Any

import torch


def branch_on_value(x: torch.Tensor) -> torch.Tensor:
    """Double positive sums, lower the others."""
    if x.sum() > 0:
        return x * 2
    return x - 1


def branch_on_rows(x: torch.Tensor) -> torch.Tensor:
    """Double what has more than four rows, lower the others."""
    if x.shape[0] > 4:
        return x * 2
    return x - 1


def add_up_rows(x: torch.Tensor) -> torch.Tensor:
    """Add rows one by one."""
    total = torch.zeros_like(x[0])
    for i in range(x.shape[0]):
        total = total + x[i]
    return total


def divide_by_rows(x: torch.Tensor) -> torch.Tensor:
    """Divide by the number of rows, asked for by its shape."""
    return x / x.shape[0]


def divide_by_len(x: torch.Tensor) -> torch.Tensor:
    """Divide by the number of rows, asked for by Python's len."""
    return x / len(x)


def scale_by_item(x: torch.Tensor) -> torch.Tensor:
    """Multiply by a number taken out of a tensor."""
    return x * x.sum().item()


def through_numpy(x: torch.Tensor) -> torch.Tensor:
    """Double outside of torch."""
    return x + torch.from_numpy(x.numpy() * 2)


def with_options(x: torch.Tensor, **options: float) -> torch.Tensor:
    """Multiply by an option that may be left out."""
    return x * options.get("scale", 2.0)


SMALL_PROGRAMS: Mapping[str, Callable[..., Any]] = {
    program.__name__: program
    for program in (
        branch_on_value,
        branch_on_rows,
        add_up_rows,
        divide_by_rows,
        divide_by_len,
        scale_by_item,
        through_numpy,
        with_options,
    )
}
"""The programs by name."""
