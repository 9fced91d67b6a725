"""Gallery: programs whose control flow, or whose numbers in Python, depend on their inputs."""

import math
import random

import torch
from torch import nn

from course_lib.models.gallery.entry import GalleryEntry


class DecidesByValue(nn.Module):
    """Take one of two paths by the sign of a sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x doubled if its sum is positive, else its negative."""
        if x.sum() > 0:
            return x * 2
        return -x


class RepeatsUntilSmall(nn.Module):
    """Halve a tensor until it is small, so that the number of steps depends on the values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x halved until no element is above 1."""
        while bool(x.abs().max() > 1):
            x = x / 2
        return x


class LoopsOverLength(nn.Module):
    """Go through a sequence step by step, as a recurrent network does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last state, of shape (features,), of x with shape (steps, features)."""
        state = torch.zeros_like(x[0])
        for step in range(x.shape[0]):
            state = torch.tanh(state + x[step])
        return state


class DecidesByDtype(nn.Module):
    """Scale half precision inputs differently."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x doubled in float32, unchanged in any other dtype."""
        if x.dtype == torch.float32:
            return x * 2
        return x


class ChecksItsInput(nn.Module):
    """Refuse inputs that it is not written for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the square root of x; raise ValueError if an element is negative."""
        if bool((x < 0).any()):
            raise ValueError("the square root needs elements of 0 or more")
        return x.sqrt()


class TakesAnOptional(nn.Module):
    """Take an input that may be None."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        """Return x, times the mask if there is one."""
        if mask is not None:
            x = x * mask
        return x


CONTROL = (
    GalleryEntry(
        "decides_by_value",
        "an if asks for the value of a tensor",
        DecidesByValue,
        lambda: (torch.ones(3),),
        lambda: ((-torch.ones(3),),),
        refused=("fx", "make_fx", "export", "aot"),
        silently_wrong=("trace",),
    ),
    GalleryEntry(
        "repeats_until_small",
        "the number of steps of a while depends on values",
        RepeatsUntilSmall,
        lambda: (torch.full((3,), 3.0),),
        lambda: ((torch.full((3,), 9.0),),),
        refused=("fx", "make_fx", "export", "aot"),
        silently_wrong=("trace",),
    ),
    GalleryEntry(
        "loops_over_length",
        "a for runs over the length of a tensor",
        LoopsOverLength,
        lambda: (torch.linspace(-1, 1, 6).reshape(3, 2),),
        lambda: ((torch.linspace(-1, 1, 10).reshape(5, 2),),),
        refused=("fx",),
        refuses_a_probe=("export",),
        silently_wrong=("trace", "make_fx", "aot"),
    ),
    GalleryEntry(
        "decides_by_dtype",
        "an if asks for the dtype of a tensor",
        DecidesByDtype,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3, dtype=torch.float64),),),
        refused=("fx",),
        silently_wrong=("trace", "make_fx", "export", "aot", "lazy"),
    ),
    GalleryEntry(
        "checks_its_input",
        "a check raises an error for some values",
        ChecksItsInput,
        lambda: (torch.ones(3),),
        lambda: ((-torch.ones(3),),),
        refused=("fx", "make_fx", "export", "aot"),
        silently_wrong=("trace",),
    ),
    GalleryEntry(
        "takes_an_optional",
        "an input may be None",
        TakesAnOptional,
        lambda: (torch.ones(3), torch.full((3,), 0.5)),
        lambda: ((torch.ones(3), None),),
        refuses_a_probe=("trace", "fx", "make_fx", "export", "aot"),
        silently_wrong=("lazy",),  # it returns a copy where the program returns its input
    ),
)


class ReadsAnItem(nn.Module):
    """Turn a result into a Python number and go on with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x divided by its largest element."""
        return x / x.max().item()


class ComputesWithShapes(nn.Module):
    """Compute a size with Python's own arithmetic."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first half of the rows, rounded up."""
        return x[: math.ceil(x.shape[0] / 2)] * 2


class GoesThroughNumpy(nn.Module):
    """Leave PyTorch for one operation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus its cumulative sum, which NumPy computes."""
        return x + torch.from_numpy(x.detach().numpy().cumsum())


class DrawsWithPython(nn.Module):
    """Take a random number from Python, not from PyTorch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times a random number between 0 and 1."""
        return x * random.random()


class CountsOnLength(nn.Module):
    """Divide by the length of a tensor as `len` returns it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean over the first dimension."""
        return x.sum(0) / len(x)


class ChoosesBySize(nn.Module):
    """Take a shorter path for a single row."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean of the rows, or the row itself if there is only one."""
        if x.shape[0] == 1:
            return x[0]
        return x.mean(0)


VALUES = (
    GalleryEntry(
        "reads_an_item",
        ".item() turns a tensor into a number",
        ReadsAnItem,
        lambda: (torch.tensor([1.0, 2.0]),),
        lambda: ((torch.tensor([1.0, 4.0]),),),
        refused=("make_fx", "aot"),
        silently_wrong=("trace",),
    ),
    GalleryEntry(
        "computes_with_shapes",
        "Python computes with a size",
        ComputesWithShapes,
        lambda: (torch.ones(4, 2),),
        lambda: ((torch.ones(7, 2),),),
        refuses_a_probe=("export",),
        silently_wrong=("trace", "make_fx", "aot"),
    ),
    GalleryEntry(
        "counts_on_length",
        "len() asks a tensor for its length",
        CountsOnLength,
        lambda: (torch.ones(4, 2),),
        lambda: ((torch.ones(8, 2),),),
        refused=("fx",),
        refuses_a_probe=("export",),
        silently_wrong=("trace", "make_fx", "aot"),
    ),
    GalleryEntry(
        "chooses_by_size",
        "an if asks for a size",
        ChoosesBySize,
        lambda: (torch.ones(1, 2),),
        lambda: ((torch.arange(4.0).reshape(2, 2),),),
        refused=("fx",),
        refuses_a_probe=("export",),
        silently_wrong=("trace", "make_fx", "aot", "lazy"),
    ),
    GalleryEntry(
        "goes_through_numpy",
        "NumPy computes a part",
        GoesThroughNumpy,
        lambda: (torch.ones(3),),
        lambda: ((torch.full((3,), 2.0),),),
        refused=("script", "fx", "export", "aot", "lazy"),
        silently_wrong=("trace", "make_fx"),
    ),
    GalleryEntry(
        "draws_with_python",
        "a random number comes from Python's random module",
        DrawsWithPython,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3),),),
        refused=("script",),
        silently_wrong=("trace", "fx", "make_fx", "export", "aot"),
    ),
)
