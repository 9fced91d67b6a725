"""Gallery: programs with Python features that some capture mode does not support."""

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from course_lib.models.gallery.entry import GalleryEntry


class TakesADict(nn.Module):
    """Loop over the entries of a dict."""

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        """Return the sum of all tensors in the batch."""
        total = torch.zeros_like(batch["a"])
        for part in batch.values():
            total = total + part
        return total


class ReturnsADict(nn.Module):
    """Name its results."""

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return x under "hidden", and its sum under "loss"."""
        return {"hidden": x * 2, "loss": x.sum()}


@dataclass
class Prediction:
    """A result in a class that the program defines."""

    mean: torch.Tensor
    spread: torch.Tensor


class ReturnsAnObject(nn.Module):
    """Return its results in an object."""

    def forward(self, x: torch.Tensor) -> Prediction:
        """Return mean and spread of x."""
        return Prediction(x.mean(), x.std())


class UsesAnUnsupportedBuiltin(nn.Module):
    """Reduce a list with a function from the standard library."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times x plus 1 times x plus 2."""
        parts = [x, x + 1, x + 2]
        return functools.reduce(torch.mul, parts)


class CatchesAnError(nn.Module):
    """Try one operation, and take another path if that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(2 * torch.eye(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times the weight; where the sizes do not fit, x itself."""
        try:
            return x @ self.weight
        except RuntimeError:
            return x


def takes_any_number(*tensors: torch.Tensor) -> torch.Tensor:
    """Return the sum of all arguments."""
    total = tensors[0]
    for tensor in tensors[1:]:
        total = total + tensor
    return total


def _call_through_a_table(name: str) -> Callable[..., torch.Tensor]:
    """Return a program that finds its activation in a dict of functions."""
    table = {"relu": torch.relu, "tanh": torch.tanh}

    def program(x: torch.Tensor) -> torch.Tensor:
        return table[name](x)

    return program


PYTHON = (
    GalleryEntry(
        "takes_a_dict",
        "an input is a dict, and a loop runs over it",
        TakesADict,
        lambda: ({"a": torch.ones(3), "b": torch.ones(3)},),
        lambda: (({"a": torch.ones(3), "b": torch.ones(3), "c": torch.ones(3)},),),
        refused=("fx",),
        refuses_a_probe=("export", "aot"),
        silently_wrong=("trace", "make_fx"),
    ),
    GalleryEntry(
        "returns_a_dict",
        "the result is a dict",
        ReturnsADict,
        lambda: (torch.ones(3),),
        lambda: ((torch.zeros(3),),),
        refused=("trace",),
    ),
    GalleryEntry(
        "returns_an_object",
        "the result is an object of the program's own class",
        ReturnsAnObject,
        lambda: (torch.arange(3.0),),
        lambda: ((torch.arange(3.0) * 2,),),
        refused=("trace", "script", "export", "aot", "lazy"),
        silently_wrong=("make_fx",),
    ),
    GalleryEntry(
        "uses_an_unsupported_builtin",
        "a function of the standard library is called",
        UsesAnUnsupportedBuiltin,
        lambda: (torch.ones(3),),
        lambda: ((torch.full((3,), 2.0),),),
        refused=("script",),
    ),
    GalleryEntry(
        "catches_an_error",
        "an error of an operator is caught",
        CatchesAnError,
        lambda: (torch.ones(2, 3),),
        lambda: ((torch.ones(2, 4),),),
        refused=("script",),
        refuses_a_probe=("trace", "fx", "make_fx", "dynamo", "export", "aot"),
        silently_wrong=("lazy",),
    ),
    GalleryEntry(
        "takes_any_number",
        "a function takes any number of arguments",
        lambda: takes_any_number,
        lambda: (torch.ones(3), torch.ones(3)),
        lambda: ((torch.ones(3), torch.ones(3), torch.ones(3)),),
        refused=("script", "fx"),
        refuses_a_probe=("trace", "make_fx", "export", "aot"),
    ),
    GalleryEntry(
        "calls_through_a_table",
        "a function is looked up in a dict",
        lambda: _call_through_a_table("tanh"),
        lambda: (torch.ones(3),),
        lambda: ((torch.full((3,), 2.0),),),
        refused=("script",),
    ),
)
