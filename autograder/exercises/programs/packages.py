"""Exported programs and packages of them, for guards; the text of this file is sent to the worker, which calls guards.

The host exports the programs and sends their files. With the promise as plain data, no answer would have to read a
program.

A promise is `{"dims", "dtypes", "ranges"}`: for each of three inputs its dimensions (a number, or the name of an open
size) and its dtype, and for each open size its least and largest value, or None where nothing is the largest. A call
is a list of tensors as `{"shape", "dtype", "value", "swapped"}`; the first two dimensions of a swapped one are so in
memory.
"""

import base64
import io
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export

NAMES = ("hidden", "residual", "mask")
Given = Mapping[str, Any]


class Scaled(nn.Module):
    """Scale one input by a parameter and add one to the others; it computes with each alone."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, hidden: torch.Tensor, residual: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the three results."""
        return hidden * self.scale, residual + 1, mask + 1


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


def tensor(shape: Sequence[int], dtype: str, value: int, *, swapped: bool = False) -> torch.Tensor:
    """Return a tensor with this value everywhere."""
    if not swapped:
        return torch.full(list(shape), value, dtype=getattr(torch, dtype))
    return tensor([shape[1], shape[0], *shape[2:]], dtype, value).transpose(0, 1)


def saved(program: ExportedProgram) -> str:
    """Return the bytes of a program's file as text."""
    file = io.BytesIO()
    torch.export.save(program, file)
    return base64.b64encode(file.getvalue()).decode()


def guarded_calls(
    answer: Callable[..., Any], program: str, calls: Sequence[Sequence[Given]]
) -> Sequence[Mapping[str, Any]]:
    """Return what a guard makes of each call: what it raises and says, or what it returns.

    What the saved program promises, and which calls fit, is known to the host alone.
    """

    def package(*inputs: torch.Tensor) -> list[int]:
        return [int(abs(each.reshape(-1)[0].item())) for each in inputs]

    run, reports = answer(package, torch.export.load(io.BytesIO(base64.b64decode(program)))), []
    for call in calls:
        try:
            reports.append({"raised": "", "said": "", "returned": run(*[tensor(**each) for each in call])})
        except Exception as error:
            reports.append({"raised": type(error).__name__, "said": str(error)[:300], "returned": None})
    return reports
