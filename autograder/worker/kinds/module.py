"""Build an answer that is a module, give it the host's state, and run it.

Every call builds anew, so that a call depends on nothing but what the host sent with it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

from autograder.protocol import Message
from autograder.protocol.tensors import RawTensor
from autograder.worker.kinds.callable import call_on_tensors, filled
from autograder.worker.tensors import to_raw, to_torch

Reply = tuple[dict[str, Any], list[RawTensor]]
MAX_FILE_BYTES = 32 << 20


class NotAModuleError(TypeError):
    """The entry point gave something that is no module, or one whose state does not fit."""


def module_answer(entry: Callable[..., Any]) -> Callable[[Message], Reply]:
    """Calls describe what the entry point builds, or run it.

    Body of both: ``build`` with ``args`` and ``kwargs``, in which ``{"tensor": i}`` stands for tensor number ``i``, and
    ``{"folder": true}`` for the path of an empty folder; ``training``. A body with ``state``, from the names of the
    state to the numbers of their tensors, also holds what `call_on_tensors` takes, and ``by``, the names of parameters
    to differentiate by as well; the module takes the precision of the state. A reply without it gives names of
    ``parameters``, ``buffers`` and ``files``, and the tensors and bytes of these in turn.
    """

    def answer(message: Message) -> Reply:
        body = message.body
        with tempfile.TemporaryDirectory() as folder:
            module = _built(entry, message, folder)
            module.train(body["training"])
            if "state" not in body:
                return _described(module, Path(folder))
        _load(module, {name: to_torch(message.tensors[i]) for name, i in body["state"].items()})
        named = dict(module.named_parameters(remove_duplicate=False))
        return call_on_tensors(module, message, [named[name] for name in body["by"]])

    return answer


def _built(entry: Callable[..., Any], message: Message, folder: str) -> nn.Module:
    build, tensors = message.body["build"], [to_torch(raw) for raw in message.tensors]
    args = [filled(a, tensors, folder) for a in build["args"]]
    module = entry(*args, **{k: filled(a, tensors, folder) for k, a in build["kwargs"].items()})
    if not isinstance(module, nn.Module):
        raise NotAModuleError(f"The answer made a {type(module).__name__}; expected an nn.Module.")
    return module


def _load(module: nn.Module, state: dict[str, torch.Tensor]) -> None:
    precisions = {tensor.dtype for tensor in state.values() if tensor.is_floating_point()}
    if len(precisions) == 1:
        module.to(precisions.pop())
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        raise NotAModuleError(f"The module cannot take the weights it should have. {error}") from None


def _described(module: nn.Module, folder: Path) -> Reply:
    state = module.state_dict()
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    parameters = [name for name in state if name in names]
    buffers = [name for name in state if name not in names]
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if sum(path.stat().st_size for path in files) > MAX_FILE_BYTES:
        raise NotAModuleError(f"The answer wrote more than {MAX_FILE_BYTES:,} bytes of files.")
    tensors = [to_raw(state[name], f"`{name}`") for name in (*parameters, *buffers)]
    tensors += [_bytes(path) for path in files]
    names_of_files = [path.relative_to(folder).as_posix() for path in files]
    return {"parameters": parameters, "buffers": buffers, "files": names_of_files}, tensors


def _bytes(path: Path) -> RawTensor:
    data = path.read_bytes()
    return RawTensor("uint8", (len(data),), (1,), data)
