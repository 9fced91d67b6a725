"""Inputs in shared memory that the host owns: written before a call, compared with a private copy after it."""

import ctypes
import math
import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from itertools import accumulate

import torch

from autograder.host.posix import fcntl
from autograder.protocol import ProtocolError, RawTensor

ALIGNMENT_BYTES = 64


class SharedInputs:
    """Hold the tensors of one call in one memory file.

    Shape, strides and sharing of storage within a tensor (an expanded dimension) reach the worker as they are.
    """

    def __init__(self, tensors: Sequence[torch.Tensor]) -> None:
        spans = [_span(t) for t in tensors]
        *self.first_bytes, size = places(map(len, spans))
        self.fd = memory_file(max(size, ALIGNMENT_BYTES))
        self._map = mmap.mmap(self.fd, max(size, ALIGNMENT_BYTES))
        self._private = spans
        self.raw: list[RawTensor] = []
        for tensor, span, first in zip(tensors, spans, self.first_bytes, strict=True):
            self._map[first : first + len(span)] = span
            self.raw.append(
                RawTensor(_name(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), span, shared=True)
            )

    def mutated(self) -> list[int]:
        """Return the indices of the tensors whose bytes differ from those that the host wrote."""
        places = zip(self.first_bytes, self._private, strict=True)
        return [i for i, (first, span) in enumerate(places) if self._map[first : first + len(span)] != span]

    def close(self) -> None:
        """Close the mapping and the descriptor; the worker's own mapping stays valid until it is closed."""
        self._map.close()
        os.close(self.fd)


def memory_file(size_bytes: int) -> int:
    """Return a descriptor of new memory, sealed so that it cannot shrink and the host can always read its mapping.

    macOS has neither such memory nor seals. It has level 5 only, which isolates nothing: there this is a removed file.
    """
    if not hasattr(os, "memfd_create"):
        with tempfile.TemporaryFile() as file:
            os.ftruncate(file.fileno(), size_bytes)
            return os.dup(file.fileno())
    descriptor = os.memfd_create("tensors", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(descriptor, size_bytes)
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return descriptor


def places(sizes: Iterable[int]) -> list[int]:
    """Return where each of the blocks begins, aligned, and where the last one ends."""
    rounded = (-(-max(size, 1) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES for size in sizes)
    return list(accumulate(rounded, initial=0))


def to_raw(tensor: torch.Tensor) -> RawTensor:
    """Return a tensor's bytes for sending inside a message."""
    return RawTensor(_name(tensor.dtype), tuple(tensor.shape), tuple(tensor.stride()), _span(tensor))


def to_torch(raw: RawTensor) -> torch.Tensor:
    """Return a tensor of the host's own from bytes that a worker sent.

    Raises `ProtocolError` for bytes that are not exactly the tensor's elements, or for sizes that no tensor can have.
    """
    if math.prod(raw.shape) != raw.extent:
        raise ProtocolError(f"a tensor of shape {raw.shape} whose bytes are not its elements one by one")
    try:
        dtype = getattr(torch, raw.dtype)
        if not len(raw.data):
            return torch.empty(raw.shape, dtype=dtype)
        return torch.frombuffer(bytearray(raw.data), dtype=dtype).as_strided(raw.shape, raw.strides)
    except (RuntimeError, OverflowError, ValueError):
        raise ProtocolError(f"a tensor of shape {raw.shape} and strides {raw.strides}") from None


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _span(tensor: torch.Tensor) -> bytes:
    """Return the bytes from a tensor's first element to its last, including gaps between strided elements."""
    tensor = tensor.detach()
    if tensor.numel() == 0:
        return b""
    extent = 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True))
    flat = tensor.as_strided((extent,), (1,), tensor.storage_offset()).contiguous()
    return ctypes.string_at(flat.data_ptr(), flat.nbytes)  # not by numpy, which may be missing on a GPU machine
