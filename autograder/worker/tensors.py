"""Raw tensors to torch tensors and back, and calls of a function, a module or a graph on them."""

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from autograder.protocol import DTYPES, RawTensor, Result, Tensors
from autograder.protocol.requests.answers import Arguments, Called, TensorCall
from autograder.worker.source import AnswerError

Base: Any = torch._C.TensorBase
"""Defines what tensors do, and cannot be changed; an answer may put methods of its own into `torch.Tensor`."""
_empty, _frombuffer, _grad = torch.empty, torch.frombuffer, torch.autograd.grad


class NotATensorError(AnswerError):
    """An output is not exactly a `torch.Tensor`."""


def to_torch(raw: RawTensor) -> torch.Tensor:
    """Return a tensor that shares memory with the raw bytes, with the same shape and strides."""
    dtype = getattr(torch, raw.dtype)
    if not len(raw.data):
        return _empty(raw.shape, dtype=dtype)
    flat = _frombuffer(raw.data if raw.shared else bytearray(raw.data), dtype=dtype)
    return Base.as_strided(flat, raw.shape, raw.strides)


def to_raw(tensor: object, what: str) -> RawTensor:
    """Return the bytes of an output, in contiguous order."""
    if type(tensor) is not torch.Tensor and type(tensor) is not torch.nn.Parameter:
        raise NotATensorError(f"{what} is a {type(tensor).__name__}, where exactly a torch.Tensor is expected.")
    layout = Base.layout.__get__(tensor)
    if layout is not torch.strided or Base.is_quantized.__get__(tensor):
        raise NotATensorError(f"{what} has layout {layout}; return an ordinary dense tensor.")
    solid = Base.contiguous(Base.cpu(Base.resolve_neg(Base.resolve_conj(Base.detach(tensor)))))
    data = ctypes.string_at(Base.data_ptr(solid), Base.nbytes.__get__(solid)) if Base.numel(solid) else b""
    dtype = str(Base.dtype.__get__(solid)).removeprefix("torch.")
    if dtype not in DTYPES:
        raise NotATensorError(f"{what} has dtype torch.{dtype}; it may have one of {', '.join(DTYPES)}.")
    return RawTensor(dtype, tuple(Base.shape.__get__(solid)), tuple(Base.stride(solid)), data)


def call_on_tensors(
    function: Callable[..., Any], call: TensorCall, tensors: Tensors, parameters: Sequence[torch.Tensor] = ()
) -> Result[Called]:
    """Call `function` and compute the requested gradients, first by tensors of the call, then by `parameters`."""
    inputs = [to_torch(raw) for raw in tensors]
    for i in call.wrt:
        Base.requires_grad_(inputs[i])
    args, kwargs = filled(call.arguments, inputs)
    result = function(*args, **kwargs)
    is_tuple = isinstance(result, tuple | list)
    outputs = list(result) if is_tuple else [result]
    raws = [to_raw(o, f"output {i}" if is_tuple else "the output") for i, o in enumerate(outputs)]
    by = [*(inputs[i] for i in call.wrt), *parameters]
    gradients = _gradients(outputs, by, [inputs[i] for i in call.cotangents])
    raws += [to_raw(g, "a gradient") for g in gradients if g is not None]
    called = Called(
        outputs=len(outputs),
        is_tuple=is_tuple,
        gradients=tuple(g is not None for g in gradients),
        aliases=tuple(i for i, o in enumerate(outputs) if _shares_memory(o, inputs)),
    )
    return Result(called, raws)


def filled(
    arguments: Arguments, inputs: Sequence[torch.Tensor], folder: str = ""
) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return the arguments with placeholders replaced by their tensors and the folder."""
    args = [_filled(a, inputs, folder) for a in arguments.args]
    return args, {name: _filled(a, inputs, folder) for name, a in arguments.kwargs.items()}


def _filled(argument: Any, inputs: Sequence[torch.Tensor], folder: str) -> Any:
    if isinstance(argument, dict):
        if set(argument) == {"tensor"}:
            return inputs[argument["tensor"]]
        if argument == {"folder": True}:
            return folder
    return argument


def _gradients(
    outputs: list[torch.Tensor], by: list[torch.Tensor], cotangents: list[torch.Tensor]
) -> list[torch.Tensor | None]:
    pairs = [(o, c) for o, c in zip(outputs, cotangents, strict=False) if Base.requires_grad.__get__(o)]
    if not by or not pairs:
        return [None] * len(by)
    heads, given = zip(*pairs, strict=True)
    return list(_grad(heads, by, given, allow_unused=True))


def _shares_memory(output: torch.Tensor, inputs: list[torch.Tensor]) -> bool:
    starts = [_start(i) for i in inputs if Base.numel(i)]
    return Base.numel(output) > 0 and _start(output) in starts


def _start(tensor: torch.Tensor) -> int:
    return Base.untyped_storage(tensor).data_ptr()
