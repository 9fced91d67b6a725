"""Values that do not depend on any input: tensors that were computed while the graph was transformed, and numbers."""

import math
import re

import torch
from torch import fx, nn

from course_lib.fusion.owned import module_of

# What torch.fx and torch.export call a tensor that the program made anew in each run, such as `torch.tensor(2.0)`.
_MADE_WHILE_TRACING = re.compile(r"(.*\.)?(_tensor_constant|lifted_tensor_|_lifted_tensor_constant)\d+")


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


def number_of(value: object) -> float | None:
    """Return the number that an argument is, or None if it is none, or may change.

    A number may be written as such, be a size (`x.shape[-1]`, as far as shapes are known), or be a tensor without
    dimensions that the program made on the way: `torch.sqrt(torch.tensor(2.0))`. Parameters and buffers may change.
    """
    if isinstance(value, fx.Node):
        held = _held_by(value)
        if isinstance(held, torch.Tensor) and held.ndim == 0 and not held.requires_grad and not held.is_complex():
            value = held.item()
        else:
            value = value.meta.get("val")
    if type(value) not in (int, float) or not math.isfinite(value):  # type: ignore[arg-type]  # now a number
        return None
    return float(value)  # type: ignore[arg-type]  # the same


def _held_by(node: fx.Node) -> object:
    """Return the tensor that a node gives in each run, or None."""
    owner = node.graph.owning_module
    if node.op == "call_module" and isinstance(module := module_of(node), Constant):
        return module()
    if node.op != "get_attr" or owner is None or not _MADE_WHILE_TRACING.fullmatch(str(node.target)):
        return None
    path, _, name = str(node.target).rpartition(".")
    return getattr(owner.get_submodule(path), name, None)
