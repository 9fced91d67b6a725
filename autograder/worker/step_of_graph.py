"""One training step of a graph that the host has checked, and dropout masks that follow from a seed."""

import contextlib
from collections.abc import Sequence
from typing import Any

import torch


class TrainingStep(torch.nn.Module):
    """A step of a graph without its optimiser: forward, loss, backward."""

    def __init__(self, graph_module: torch.nn.Module, by: Sequence[str]) -> None:
        super().__init__()
        self.graph_module, self.by = graph_module, by

    def forward(self, *inputs: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        """Return the loss, which is the mean square of the output, and its gradients by the parameters."""
        parameters = [self.graph_module.get_parameter(path) for path in self.by]
        with torch.enable_grad():
            loss = self.graph_module(*inputs).square().mean()
            return loss, *torch.autograd.grad(loss, parameters, allow_unused=True)


def replayed(seed: int | None) -> contextlib.AbstractContextManager[Any]:
    """Return a context in which the k-th dropout has the mask that follows from `seed`; None changes nothing."""
    if seed is None:
        return contextlib.nullcontext()
    from course_lib.kernels.replayed_draws import ReplayedDraws

    return ReplayedDraws(seed)
