"""Exported programs and packages of them, for guards; the text of this file is sent to the worker, which calls guards.

A promise is `{"dims", "dtypes", "ranges"}`: for each of three inputs its dimensions (a number, or the name of an open
size) and its dtype, and for each open size its least and largest value, or None where nothing is the largest. A call
is a list of tensors as `{"shape", "dtype", "swapped"}`; the first two dimensions of a swapped one are so in memory.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export
from torch.utils._python_dispatch import TorchDispatchMode

NAMES = ("hidden", "residual", "mask")
Given = Mapping[str, Any]


class Scaled(nn.Module):
    """Scale one input by a parameter and add the second; return the third plus one, too."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return both results."""
        return hidden * self.scale + residual, mask + 1


class Operators(TorchDispatchMode):
    """Note each operator that runs."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note the operator's name and run it."""
        self.ran.append(str(func))
        return func(*args, **(kwargs or {}))


def promised(
    dims: Sequence[Sequence[Any]], dtypes: Sequence[str], ranges: Mapping[str, Sequence[Any]]
) -> ExportedProgram:
    """Return a program that promises this about its inputs."""
    sizes, values = {}, {}
    for at, (name, (low, high)) in enumerate(ranges.items()):
        sizes[name] = Dim(name, min=low, max=high)
        values[name] = low + 2 + at
    example = [
        torch.ones([values.get(dim, dim) for dim in each], dtype=getattr(torch, dtype))
        for each, dtype in zip(dims, dtypes, strict=True)
    ]
    dynamic = tuple({at: sizes[dim] for at, dim in enumerate(each) if dim in sizes} for each in dims)
    return export(Scaled(), tuple(example), dynamic_shapes=dynamic)


def tensor(shape: Sequence[int], dtype: str, *, swapped: bool = False) -> torch.Tensor:
    """Return a tensor of zeros."""
    if not swapped:
        return torch.zeros(list(shape), dtype=getattr(torch, dtype))
    return torch.zeros([shape[1], shape[0], *shape[2:]], dtype=getattr(torch, dtype)).transpose(0, 1)


def guarded_calls(
    answer: Callable[..., Any], promise: Mapping[str, Any], calls: Sequence[Sequence[Given]]
) -> Sequence[Mapping[str, Any]]:
    """Return what a guard does with each call: what it raises and says, and what it does with the package.

    `returned` tells whether it called the package once, with the tensors of the call, and returned its result.
    """
    seen: list[tuple[torch.Tensor, ...]] = []
    results: list[object] = []

    def package(*inputs: torch.Tensor) -> object:
        seen.append(inputs)
        results.append([len(seen)])
        return results[-1]

    run, reports = answer(package, promised(**promise)), []
    for call in calls:
        given = [tensor(**each) for each in call]
        seen.clear()
        report = {"raised": "", "said": "", "calls": 0, "returned": False, "operators": []}
        with Operators() as operators:
            try:
                found = run(*given)
                same = len(seen) == 1 and len(seen[0]) == len(given)
                same = same and all(one is other for one, other in zip(seen[0], given, strict=True))
                report["returned"] = same and found is results[-1]
            except Exception as error:
                report |= {"raised": type(error).__name__, "said": str(error)[:300]}
        reports.append(report | {"calls": len(seen), "operators": operators.ran[:3]})
    return reports
