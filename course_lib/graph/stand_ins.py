"""Stand for real tensors by fake ones, which have no data, and share memory where the real ones do."""

import copy
from collections.abc import Iterable, Iterator

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._pytree import tree_leaves

from course_lib.graph.memory import storage_of

_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class StandIns:
    """The fake tensors that stand for the tensors of one graph: its inputs, its parameters, and all that modules hold.

    Each tensor has one stand-in. Two tensors that are views of one storage have stand-ins that are views of one
    storage too, so a write through one is a write to both. A tensor on the meta device becomes one on `device`.
    """

    def __init__(self, mode: FakeTensorMode, device: torch.device | None = None) -> None:
        self.mode = mode
        self._device = device
        self._made: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}  # the tensor itself keeps its identity taken
        self._memory: dict[int, torch.UntypedStorage] = {}
        self.storages: set[int] = set()  # of the stand-ins
        self._one_memory: dict[int, frozenset[int]] = {}  # storage -> those that are the same memory in another mode

    def of(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return the stand-in of a tensor; that of a parameter is a parameter."""
        if id(tensor) not in self._made:
            fake = fake_like(tensor, self.mode, self._device, self._memory)
            self._made[id(tensor)] = tensor, fake
            self.storages.add(storage_of(fake))
        return self._made[id(tensor)][1]

    def take(self, tensor: torch.Tensor, fake: torch.Tensor) -> None:
        """Let an existing fake tensor stand for a tensor."""
        self._made[id(tensor)] = tensor, fake
        self._memory[storage_of(tensor)] = fake.untyped_storage()
        self.storages.add(storage_of(fake))

    def join(self, storages: frozenset[int]) -> None:
        """Note storages that are one memory in training or in evaluation, such as those around a Dropout."""
        joined = self.joined(storages)
        self._one_memory.update(dict.fromkeys(joined, joined))

    def joined(self, storages: Iterable[int]) -> frozenset[int]:
        """Return storages with all that are the same memory in training or in evaluation."""
        storages = frozenset(storages)
        return storages.union(*(self._one_memory[one] for one in storages & self._one_memory.keys()))

    def twin(self, module: nn.Module) -> nn.Module:
        """Return a copy of a module that holds the stand-ins of its tensors, so that it can be run without harm."""
        twin = copy.deepcopy(module, {id(tensor): self.of(tensor) for tensor in tensors_held(module)})
        give_momentum(twin)
        return twin

    def __deepcopy__(self, memo: dict[int, object]) -> "StandIns":
        return self  # the nodes of a copied graph have the same fake tensors


def fake_like(
    tensor: torch.Tensor,
    mode: FakeTensorMode,
    device: torch.device | None = None,
    memory: dict[int, torch.UntypedStorage] | None = None,
) -> torch.Tensor:
    """Return a tensor without data, with the same shape, strides, dtype and device, and its own storage.

    A tensor on the meta device becomes one on `device`, if `device` is given. A parameter becomes a parameter. With
    `memory`, which maps storages to those of their stand-ins, tensors that share memory share it afterwards.
    """
    on_meta = device is not None and tensor.device.type == "meta" and not isinstance(tensor, FakeTensor)
    place = device if device is not None and on_meta else tensor.device
    shared = memory.get(storage_of(tensor)) if memory else None
    if shared is None and not tensor.storage_offset():
        described = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device="meta")
    else:
        described = torch.empty(0, dtype=tensor.dtype, device="meta")
        storage = described.untyped_storage() if shared is None else shared
        described.set_(storage, tensor.storage_offset(), tuple(tensor.shape), tensor.stride())
    if memory is not None and shared is None:
        memory[storage_of(tensor)] = described.untyped_storage()
    fake = FakeTensor(mode, described, place)  # same as `with mode: torch.empty_strided(...)`, but six times faster
    if isinstance(tensor, nn.Parameter):
        return nn.Parameter(fake, requires_grad=tensor.requires_grad)
    return fake


def give_momentum(root: nn.Module) -> None:
    """Give each BatchNorm without a momentum one, so that it runs on fake tensors with the same shapes and effects.

    In training, it would ask how many batches it has seen, a number that a fake tensor does not have.
    """
    for module in root.modules():
        if isinstance(module, _NORMS) and module.momentum is None:
            module.momentum = 1.0


def tensors_held(root: nn.Module) -> Iterator[torch.Tensor]:
    """Yield the tensors of a module and its parts: parameters, buffers, and plain attributes, also in containers."""
    for module in root.modules():
        for value in vars(module).values():
            if isinstance(value, (torch.Tensor, dict, list, tuple)):
                yield from (leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor))
