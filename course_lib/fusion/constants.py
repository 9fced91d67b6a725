"""A value that was computed while the graph was transformed."""

import torch
from torch import nn


class Constant(nn.Module):
    """Gives the same tensor each time; it is no buffer, so `to()` leaves it alone and no checkpoint holds it.

    That is what the calls did whose result it holds: `torch.arange(8)` gives int64 on the CPU, wherever the model is.
    """

    def __init__(self, value: torch.Tensor) -> None:
        super().__init__()
        self._value = (value,)  # in a tuple, because nn.Module would make a tensor an attribute that torch.fx registers

    def forward(self) -> torch.Tensor:
        """Return the tensor itself; nobody may change it."""
        return self._value[0]

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return f"{str(self._value[0].dtype).removeprefix('torch.')}{list(self._value[0].shape)}"
