"""Raise an error before an operator at which a part of PyTorch ends the whole process, with signal 11."""

from typing import Any

from torch.autograd import forward_ad
from torch.overrides import TorchFunctionMode

LISTS = ("split", "chunk", "unbind", "split_with_sizes", "hsplit", "vsplit", "dsplit", "__iter__")


class NoForwardMode(TorchFunctionMode):
    """Refuse forward-mode derivatives: lazy tensors end the process there, and TorchScript's tracer the second time."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raise an error inside a level of dual numbers; the number of the level is private."""
        if forward_ad._current_level >= 0:
            raise RuntimeError("forward-mode derivatives end the process")
        return func(*args, **(kwargs or {}))


class NothingFatalToLazy(NoForwardMode):
    """Refuse operators that give a list of views too, at which lazy tensors end the process."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Raise an error before such an operator."""
        name = getattr(func, "__name__", "")
        if name in LISTS:
            raise RuntimeError(f"lazy tensors end the process at {name}")
        return super().__torch_function__(func, types, args, kwargs)
