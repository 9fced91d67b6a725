"""Whether a module does more than its class says."""

import torch

# Private names of torch.nn.Module: PyTorch offers no public way to ask. A test notices when one of them
# moves.
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: torch.nn.Module) -> bool:
    """Return whether hooks run around this module, or its instance carries a `forward` of its own."""
    return "forward" in vars(module) or any(vars(module)[table] for table in HOOK_TABLES)
