"""Describe one program of the gallery, with its inputs and the verdict on each capture mode."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from torch import nn

Inputs = tuple[Any, ...]
Verdict = Literal["captured", "refused", "refuses a probe", "silently wrong", "ran as Python"]


@dataclass(frozen=True)
class GalleryEntry:
    """Hold a program and the verdict on each capture mode."""

    name: str
    reason: str  # why a graph cannot represent the program
    build: Callable[[], nn.Module | Callable[..., Any]]  # gives a fresh program
    example_inputs: Callable[[], Inputs]  # fresh inputs to capture from
    probe_inputs: Callable[[], tuple[Inputs, ...]]  # fresh inputs that show whether a capture is right
    refused: tuple[str, ...] = ()  # the modes that refuse to capture it
    refuses_a_probe: tuple[str, ...] = ()  # the modes whose graph says that it cannot run on a probe
    silently_wrong: tuple[str, ...] = ()  # the modes whose graph runs and does something else
    switch_training: bool = False  # whether to add a probe in the other training mode

    def verdict(self, mode: str) -> Verdict:
        """Return the verdict on the capture mode of this name."""
        if mode in self.refused:
            return "refused"
        if mode in self.refuses_a_probe:
            return "refuses a probe"
        return "silently wrong" if mode in self.silently_wrong else "captured"
