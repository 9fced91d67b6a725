"""Find modules whose behaviour differs from their class because of hooks or an instance attribute `forward`."""

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.modules import module as _modules

# Private names of torch.nn.Module: PyTorch has no public way to read hooks. A test fails when one of them moves.
HOOK_TABLES = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


def has_hooks(module: torch.nn.Module) -> bool:
    """Return whether a call of the module runs hooks, its own or those of all modules, or a `forward` of its own."""
    return has_own_hooks(module) or any(hooks_of_all_modules())


def has_own_hooks(module: torch.nn.Module) -> bool:
    """Return whether the module has hooks, or its instance has its own `forward`."""
    return "forward" in vars(module) or any(own_hooks(module))


def own_hooks(module: torch.nn.Module) -> tuple[Mapping[int, Any], ...]:
    """Return the tables of hooks of one module."""
    return tuple(vars(module)[table] for table in HOOK_TABLES)


def hooks_of_all_modules() -> tuple[Mapping[int, Any], ...]:
    """Return the tables of hooks that run with each module, see `register_module_forward_hook` and its kin."""
    return tuple(getattr(_modules, f"_global{table}") for table in HOOK_TABLES)
