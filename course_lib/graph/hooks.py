"""Find modules whose behaviour differs from their class: by hooks, or by a `forward` of the instance."""

import torch

# Private names of torch.nn.Module: PyTorch has no public way to read hooks. A test fails when one of them moves.
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: torch.nn.Module) -> bool:
    """Return whether hooks run around this module, or its instance carries a `forward` of its own."""
    return "forward" in vars(module) or any(vars(module)[table] for table in HOOK_TABLES)
