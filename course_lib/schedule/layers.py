"""Modules that a schedule puts in the place of others: checkpoints, linear layers in two operators, functions."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from course_lib.errors import ScheduleError
from course_lib.graph.hooks import has_hooks
from course_lib.schedule.fused_call import name_of


class Checkpointed(nn.Module):
    """Runs a module, saves only its inputs, and computes the rest again in the backward pass.

    Names in the state dict stay as they were: the tables of parameters, buffers and sub-modules are the module's own.
    Dropout drops the same elements when it is computed again.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._inner = (module,)  # in a tuple, because a registered module would add its name to the state dict
        self._parameters, self._buffers, self._modules = module._parameters, module._buffers, module._modules
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        self.training = module.training
        self.enabled = True  # `verify` switches it off where dropout masks are replayed, which are recorded once

    @property
    def inner(self) -> nn.Module:
        """The module that is run."""
        return self._inner[0]

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the module returns."""
        if not (self.enabled and torch.is_grad_enabled()):
            return self.inner(*args, **kwargs)
        return checkpoint(self.inner, *args, use_reentrant=False, **kwargs)

    def train(self, mode: bool = True) -> "Checkpointed":
        """Set the mode of this module and of the one it runs."""
        super().train(mode)
        self.inner.training = mode
        return self

    def __reduce__(self) -> tuple[type[nn.Module], tuple[nn.Module]]:
        # A copy wraps a copy of the module, so that both share their tables again.
        return type(self), (self.inner,)


class SeparateBiasLinear(nn.Linear):
    """Multiplies first and adds its bias in an operator of its own, which later operators can be fused with.

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


class FunctionModule(nn.Module):
    """A function in the place of a module without parameters."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Return what the function returns."""
        return self.function(*args, **kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> "FunctionModule":
        return FunctionModule(self.function).train(self.training)  # an operator of torch.library refuses to be copied

    def extra_repr(self) -> str:
        """Return what `print` shows of the module."""
        return name_of(self.function)
