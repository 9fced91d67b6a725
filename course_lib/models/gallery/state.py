"""Gallery: programs that keep state between calls, or have side effects."""

import torch
from torch import nn

from course_lib.models.gallery.entry import GalleryEntry


class AsksForTraining(nn.Module):
    """Compute another result in training mode, like dropout, but without randomness."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x doubled in training, unchanged in evaluation."""
        if self.training:
            return x * 2
        return x + 0


class CountsItsCalls(nn.Module):
    """Change a Python number that does not affect the result."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: int = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x plus 1, and count the call."""
        self.calls += 1
        return x + 1


class GrowsWithItsCalls(nn.Module):
    """Multiply by a Python number that it changes itself."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: int = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times the number of calls so far."""
        self.calls += 1
        return x * self.calls


class WritesToABuffer(nn.Module):
    """Count in a buffer, as BatchNorm counts the batches it has seen."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x times the number of calls so far."""
        self.calls.add_(1)
        return x * self.calls


class AssignsToAPart(nn.Module):
    """Write into a row of the caller's tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Set the first row of `x` to 0, and return `x * 2`."""
        x[0] = 0
        return x * 2


class AppendsToAList(nn.Module):
    """Change the caller's list."""

    def forward(self, x: torch.Tensor, seen: list[torch.Tensor]) -> torch.Tensor:
        """Append x to `seen`, and return the sum of all in it."""
        seen.append(x)
        return torch.stack(seen).sum(0)


class PrintsAsItGoes(nn.Module):
    """Print a line at each call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Print a line, and return x plus 1."""
        print("one more call")
        return x + 1


STATE = (
    GalleryEntry(
        "asks_for_training",
        "an if asks for the training flag",
        AsksForTraining,
        lambda: (torch.ones(3),),
        lambda: (),
        refuses_a_probe=("export",),
        silently_wrong=("trace", "fx", "make_fx", "aot"),
        switch_training=True,
    ),
    GalleryEntry(
        "counts_its_calls",
        "a Python attribute is changed, and the result does not show it",
        CountsItsCalls,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3),),),
        silently_wrong=("trace", "fx", "make_fx", "export", "aot"),
    ),
    GalleryEntry(
        "grows_with_its_calls",
        "a Python attribute is changed and used",
        GrowsWithItsCalls,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3),),),
        silently_wrong=("trace", "fx", "make_fx", "export", "aot"),
    ),
    GalleryEntry(
        "writes_to_a_buffer",
        "a buffer is changed in place",
        WritesToABuffer,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3),),),
        silently_wrong=("fx",),
    ),
    GalleryEntry(
        "assigns_to_a_part",
        "a part of an input is assigned to",
        AssignsToAPart,
        lambda: (torch.ones(2, 3),),
        lambda: ((torch.full((2, 3), 2.0),),),
        refused=("fx",),
    ),
    GalleryEntry(
        "appends_to_a_list",
        "the caller's list is changed",
        AppendsToAList,
        lambda: (torch.ones(3), [torch.ones(3)]),
        lambda: ((torch.ones(3), [torch.ones(3), torch.ones(3)]),),
        silently_wrong=("trace", "script", "make_fx", "export", "aot"),
    ),
    GalleryEntry(
        "prints_as_it_goes",
        "something is printed",
        PrintsAsItGoes,
        lambda: (torch.ones(3),),
        lambda: ((torch.ones(3),),),
        silently_wrong=("trace", "fx", "make_fx", "export", "aot"),
    ),
)
