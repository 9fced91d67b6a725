"""Keep only a module's inputs for the backward pass, and compute the rest again when it comes."""

from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Checkpointed(nn.Module):
    """Runs a module so that what it computes on the way is not kept for the backward pass.

    Names in the state dict stay as they were: the tables of parameters, buffers and sub-modules are the module's own.
    Dropout drops the same elements when it is computed again.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self._inner = (module,)  # in a tuple, because a registered module would add its name to the state dict
        self._parameters, self._buffers, self._modules = module._parameters, module._buffers, module._modules
        self._non_persistent_buffers_set = module._non_persistent_buffers_set
        self.training = module.training
        self.enabled = True  # `verify` switches it off where masks are handed over, which are drawn once

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
        # A copy is built anew around a copy of the module, so that both share their tables again.
        return type(self), (self.inner,)
