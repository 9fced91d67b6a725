"""Raw tensors to torch tensors and back."""

import ctypes

import torch

from autograder.protocol import RawTensor
from autograder.worker.failures import AnswerError


class NotATensorError(AnswerError):
    """An output is not exactly a `torch.Tensor`."""


def to_torch(raw: RawTensor) -> torch.Tensor:
    """Return a tensor over the raw bytes themselves, with the same shape and strides."""
    dtype = getattr(torch, raw.dtype)
    if not len(raw.data):
        return torch.empty(raw.shape, dtype=dtype)
    flat = torch.frombuffer(raw.data if raw.shared else bytearray(raw.data), dtype=dtype)
    return flat.as_strided(raw.shape, raw.strides)


def to_raw(tensor: object, what: str) -> RawTensor:
    """Return the bytes of an output, in contiguous order."""
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        raise NotATensorError(f"{what} is a {type(tensor).__name__}, where exactly a torch.Tensor is expected.")
    if tensor.layout is not torch.strided or tensor.is_quantized:
        raise NotATensorError(f"{what} has layout {tensor.layout}; return an ordinary dense tensor.")
    solid = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    data = ctypes.string_at(solid.data_ptr(), solid.nbytes) if solid.numel() else b""
    return RawTensor(str(solid.dtype).removeprefix("torch."), tuple(solid.shape), tuple(solid.stride()), data)
