"""Find the tensors that autograd saves for backward."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from course_lib.graph.cost import Storages
from course_lib.graph.regions import storage_of, tensors_in
from course_lib.graph.shapes import describe_value


@dataclass(frozen=True)
class SavedForBackward:
    """Hold the memory that a program saves for its backward pass, beyond its inputs and parameters."""

    total_bytes: int
    tensors: tuple[str, ...]  # dtype and shape of each tensor that was kept, in the order of the forward pass


def saved_for_backward(fn: Callable[..., object], inputs: Sequence[object]) -> SavedForBackward:
    """Run `fn(*inputs)` once, forward, and return what autograd saved.

        >>> x, weight = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)
        >>> saved_for_backward(lambda x, w: torch.relu(torch.nn.functional.linear(x, w)), (x, weight))
        SavedForBackward(total_bytes=32, tensors=('float32[2, 4]',))

    Memory that existed before the program ran (inputs, parameters, constants) does not count. Each other storage counts
    once and whole, however many views of it were saved. Inputs are real or fake tensors; nothing is saved unless some
    tensor requires gradients. Functions that use `torch.func.grad` are not supported: PyTorch raises RuntimeError.
    Tensors saved inside `torch.utils.checkpoint` are not seen.
    """
    watcher = _Watcher()
    saved: dict[int, tuple[torch.UntypedStorage, str]] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if watcher.storages.is_made(tensor):
            # Kept alive until the end, so that no other storage gets the same number.
            saved.setdefault(storage_of(tensor), (tensor.untyped_storage(), describe_value(tensor)))
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor)
    with torch.inference_mode(False), torch.enable_grad(), watcher, hooks:
        fn(*inputs)
    storages = saved.values()
    return SavedForBackward(sum(storage.nbytes() for storage, _ in storages), tuple(text for _, text in storages))


class _Watcher(TorchDispatchMode):
    """Track the memory that the program allocates."""

    def __init__(self) -> None:
        super().__init__()
        self.storages = Storages()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.storages.saw(tensors_in((args, kwargs)), tensors_in(result))
        return result
