"""Find modules whose behaviour differs from their class because of hooks or an instance attribute `forward`."""

import torch

# Private names of torch.nn.Module: PyTorch has no public way to read hooks. A test fails when one of them moves.
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: torch.nn.Module) -> bool:
    """Return whether the module has hooks, or its instance has its own `forward`."""
    return "forward" in vars(module) or any(vars(module)[table] for table in HOOK_TABLES)
