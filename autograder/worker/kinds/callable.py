"""Call an answer that is a function: plain data to plain data, or tensors to tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker import source
from autograder.worker.at_once import answer_at_once
from autograder.worker.rounds import with_rounds
from autograder.worker.tensors import to_raw, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]


class NotPlainDataError(TypeError):
    """A value answer holds something other than None, bool, int, float, str, list, tuple and dict."""


def value_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls take ``{"question": JSON}`` and give ``{"value": JSON}``."""

    def answer(message: Message) -> Reply:
        return {"value": plain_data(entry(message.body["question"]), "the result")}, []

    return answer


def plain_data(value: object, where: str) -> Any:
    """``value`` as JSON takes it; raises `NotPlainDataError`, naming ``where``, for what is none."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        if not math.isfinite(value):
            raise NotPlainDataError(f"{where} is {value}; only finite numbers can be answers.")
        return value
    if type(value) in (list, tuple):
        return [plain_data(item, f"{where}[{i}]") for i, item in enumerate(value)]  # type: ignore[arg-type, var-annotated]
    if type(value) is dict and all(type(key) is str for key in value):
        return {key: plain_data(item, f"{where}[{key!r}]") for key, item in value.items()}
    raise NotPlainDataError(
        f"{where} is a {type(value).__name__}; "
        "answer with None, bool, int, float, str, and lists and dicts (with str keys) of them."
    )


def callable_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls take arguments and give outputs, and gradients where asked (see `call_on_tensors`), or run a round.

    A call with ``function`` is of another function of the answer than its entry point; `at_once` says what several
    calls in one message are.
    """

    def answer(message: Message) -> Reply:
        if "at_once" in message.body:
            code = getattr(entry, "__code__", None)  # what can be called need not be a function
            return answer_at_once(answer, message, code.co_filename if code else "")
        name = message.body.get("function")
        return call_on_tensors(source.function(name) if name else entry, message)

    return with_rounds(entry, answer)


def call_on_tensors(function: Callable[..., Any], message: Message, parameters: Sequence[torch.Tensor] = ()) -> Reply:
    """Call ``function`` as the body says and pack what it gives.

    Body of a call: ``args`` and ``kwargs``, in which ``{"tensor": i}`` stands for tensor number ``i``; ``wrt``, the
    numbers of the tensors to differentiate by, after which come ``parameters``; ``cotangents``, for each output the
    number of the tensor that stands for its gradient, or None. Body of a reply: ``outputs``, the number of output
    tensors; ``is_tuple``; ``gradients``, for each tensor to differentiate by whether there is one; ``aliases``, the
    outputs that share memory with an input.
    """
    body = message.body
    inputs = [to_torch(raw) for raw in message.tensors]
    for i in body["wrt"]:
        inputs[i].requires_grad_()
    args = [filled(a, inputs) for a in body["args"]]
    kwargs = {k: filled(a, inputs) for k, a in body["kwargs"].items()}
    result = function(*args, **kwargs)
    is_tuple = isinstance(result, tuple | list)
    outputs = list(result) if is_tuple else [result]
    raws = [to_raw(o, f"output {i}" if is_tuple else "the output") for i, o in enumerate(outputs)]
    by = [*(inputs[i] for i in body["wrt"]), *parameters]
    gradients = _gradients(outputs, by, inputs, body)
    raws += [to_raw(g, "a gradient") for g in gradients if g is not None]
    reply = {
        "outputs": len(outputs),
        "is_tuple": is_tuple,
        "gradients": [g is not None for g in gradients],
        "aliases": [i for i, o in enumerate(outputs) if _shares_memory(o, inputs)],
    }
    return reply, raws


def filled(argument: Any, inputs: Sequence[torch.Tensor], folder: str = "") -> Any:
    """The argument itself, or the tensor or the folder for which it stands."""
    if isinstance(argument, dict):
        if set(argument) == {"tensor"}:
            return inputs[argument["tensor"]]
        if argument == {"folder": True}:
            return folder
    return argument


def _gradients(
    outputs: list[torch.Tensor], by: list[torch.Tensor], inputs: list[torch.Tensor], body: dict[str, Any]
) -> list[torch.Tensor | None]:
    pairs = [
        (o, inputs[c]) for o, c in zip(outputs, body["cotangents"], strict=False) if c is not None and o.requires_grad
    ]
    if not by or not pairs:
        return [None] * len(by)
    heads, cotangents = zip(*pairs, strict=True)
    return list(torch.autograd.grad(heads, by, cotangents, allow_unused=True))


def _shares_memory(output: torch.Tensor, inputs: list[torch.Tensor]) -> bool:
    start = output.untyped_storage().data_ptr()
    return output.numel() > 0 and any(start == i.untyped_storage().data_ptr() for i in inputs if i.numel())
