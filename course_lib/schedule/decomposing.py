"""A linear layer in two operators, so that what follows can be fused with its bias."""

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import ScheduleError
from course_lib.graph.hooks import has_hooks


class SeparateBiasLinear(nn.Linear):
    """A linear layer that multiplies first and adds its bias in an operator of its own.

    torch.fx traces into it, where it keeps `torch.nn.Linear` as one node.
    """

    def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  # as in torch.nn.Linear
        """Return `input @ weightᵀ + bias`: (..., in_features) in, (..., out_features) out."""
        return F.linear(input, self.weight) + self.bias


def separate_bias(path: str, linear: nn.Module) -> SeparateBiasLinear:
    """Return a layer that computes the same, and holds the very Parameters of `linear`; raise `ScheduleError`."""
    if type(linear) is not nn.Linear:
        raise ScheduleError(
            f"decompose got {path or 'the model'}, a {type(linear).__name__}; it expects a torch.nn.Linear, "
            "so give the path of one."
        )
    if not isinstance(linear.bias, nn.Parameter):
        raise ScheduleError(f"decompose got {path}, which has no bias, so leave it as it is.")
    if has_hooks(linear):
        raise ScheduleError(f"decompose got {path}, which has hooks that would no longer run; remove the hooks first.")
    separated = SeparateBiasLinear(
        linear.in_features, linear.out_features, device="meta"
    )  # its own weights cost nothing
    separated.weight, separated.bias = linear.weight, linear.bias
    return separated.train(linear.training)
