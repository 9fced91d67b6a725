"""Gallery: programs whose path depends on their inputs."""

import torch
from torch import nn

from course_lib.models.gallery_entry import GalleryEntry


class DecidesByValue(nn.Module):
    """Takes one of two paths by the sign of a sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x doubled if its sum is positive, else its negative."""
        if x.sum() > 0:
            return x * 2
        return -x


class RepeatsUntilSmall(nn.Module):
    """Halves a tensor until it is small, so that the number of steps depends on the values."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x halved until no element is above 1."""
        while bool(x.abs().max() > 1):
            x = x / 2
        return x


class LoopsOverLength(nn.Module):
    """Goes through a sequence step by step, as a recurrent network does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the last state, of shape (features,), of x with shape (steps, features)."""
        state = torch.zeros_like(x[0])
        for step in range(x.shape[0]):
            state = torch.tanh(state + x[step])
        return state


class DecidesByDtype(nn.Module):
    """Scales half precision inputs differently."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x doubled in float32, unchanged in any other dtype."""
        if x.dtype == torch.float32:
            return x * 2
        return x


class ChecksItsInput(nn.Module):
    """Refuses inputs that it is not written for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the square root of x; raise ValueError if an element is negative."""
        if bool((x < 0).any()):
            raise ValueError("the square root needs elements of 0 or more")
        return x.sqrt()


class TakesAnOptional(nn.Module):
    """Has an input that may be None."""

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
        silently_wrong=("trace", "make_fx", "export", "aot"),
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
    ),
)
