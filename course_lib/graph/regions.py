"""Which memory lies behind tensors: what appears twice, or is expanded, lies in memory once."""

from collections.abc import Iterable

import torch

Region = tuple[object, ...]  # tells pieces of memory apart; begins with the storage


def tensors_in(value: object) -> list[torch.Tensor]:
    """Return the tensors in a nest of tuples, lists and dicts."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def storage_of(tensor: torch.Tensor) -> int:
    """Return a number for the storage of a tensor, unique among those that are alive."""
    return int(tensor.untyped_storage()._cdata)


def regions(tensors: Iterable[torch.Tensor]) -> dict[Region, int]:
    """Return the distinct pieces of memory behind tensors, with their sizes in bytes."""
    found: dict[Region, int] = {}
    for tensor in tensors:
        # In no order, so that a tensor and its transpose are the same region.
        real = sorted((size, stride) for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride != 0)
        elements = 0 if tensor.numel() == 0 else torch.Size(size for size, _ in real).numel()
        key = (storage_of(tensor), tensor.storage_offset(), tuple(real), tensor.dtype)
        found[key] = elements * tensor.element_size()
    return found


def distinct_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Return how many bytes of memory lie behind tensors."""
    return sum(regions(tensors).values())
