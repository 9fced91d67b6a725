"""Gallery: programs that turn tensors into Python values."""

import math
import random

import torch
from torch import nn

from course_lib.models.gallery_entry import GalleryEntry


class ReadsAnItem(nn.Module):
    """Turns a result into a Python number and goes on with it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x divided by its largest element."""
        return x / x.max().item()


class ComputesWithShapes(nn.Module):
    """Computes a size with Python's own arithmetic."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the first half of the rows, rounded up."""
        return x[: math.ceil(x.shape[0] / 2)] * 2


class GoesThroughNumpy(nn.Module):
    """Leaves PyTorch for one operation."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus its cumulative sum, which NumPy computes."""
        return x + torch.from_numpy(x.detach().numpy().cumsum())


class DrawsWithPython(nn.Module):
    """Takes a random number from Python, not from PyTorch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times a random number between 0 and 1."""
        return x * random.random()


class CountsOnLength(nn.Module):
    """Asks Python for the length of a tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mean over the first dimension."""
        return x.sum(0) / len(x)


class ChoosesBySize(nn.Module):
    """Has a shorter way for a single row."""

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
        silently_wrong=("trace", "make_fx", "aot"),
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
