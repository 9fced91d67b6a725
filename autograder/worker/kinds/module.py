"""Build an answer that is a module, give it the host's state, and run it.

Every call builds the module again, so that a call depends only on what the host sent with it. Before the call, the
module computes with other weights of the same sizes, so that one that keeps what it computed from its weights is wrong.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import torch
from torch import nn

from autograder.protocol import Handlers, RawTensor, Result, Tensors
from autograder.protocol.requests.answers import Arguments, Called, CallModule, Described, DescribeModule, TensorCall
from autograder.worker.source import AnswerError
from autograder.worker.tensors import call_on_tensors, filled, to_raw, to_torch

MAX_FILE_BYTES = 32 << 20
NAMES_SHOWN = 3


class NotAModuleError(AnswerError):
    """The entry point returned something other than a module, or a module whose state does not fit."""


def module_answer(entry: Callable[..., Any]) -> Handlers:
    """Return the request handlers for a module answer."""

    def describe(request: DescribeModule, tensors: Tensors) -> Result[Described]:
        with tempfile.TemporaryDirectory() as folder:
            module = _built(entry, request.build, tensors, folder)
            module.train(request.training)
            return _described(module, Path(folder))

    def call(request: CallModule, tensors: Tensors) -> Result[Called]:
        states = [{name: to_torch(tensors[i]) for name, i in each.items()} for each in (request.earlier, request.state)]
        before = _prepared(entry, request, tensors, states[0])
        module = _prepared(entry, request, tensors, states[0])
        for earlier in (before, module):  # one object that is gone then, and one that gets other weights
            call_on_tensors(earlier, TensorCall(request.call.arguments), tensors)
        load_state(module, states[1])
        named = dict(module.named_parameters(remove_duplicate=False))
        return call_on_tensors(module, request.call, tensors, [named[name] for name in request.by])

    return {DescribeModule: describe, CallModule: call}


def _prepared(
    entry: Callable[..., Any], request: CallModule, tensors: Tensors, state: Mapping[str, torch.Tensor]
) -> nn.Module:
    """Return a new module in the mode of the request and the precision of the state, with the state in it."""
    with tempfile.TemporaryDirectory() as folder:
        module = _built(entry, request.build, tensors, folder)
        module.train(request.training)
    precisions = {tensor.dtype for tensor in state.values() if tensor.is_floating_point()}
    if len(precisions) == 1:
        module.to(precisions.pop())
    load_state(module, state)
    return module


def _built(entry: Callable[..., Any], build: Arguments, tensors: Tensors, folder: str) -> nn.Module:
    args, kwargs = filled(build, [to_torch(raw) for raw in tensors], folder)
    return required_module(entry(*args, **kwargs))


def required_module(made: object) -> nn.Module:
    """Return the answer's module; raises `NotAModuleError` if it is not a module."""
    if not isinstance(made, nn.Module):
        raise NotAModuleError(f"The answer made a {type(made).__name__}; expected an nn.Module.")
    return made


def load_state(module: nn.Module, state: Mapping[str, torch.Tensor]) -> None:
    """Load the host's weights; raises `NotAModuleError` if they do not fit."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        own = module.state_dict()
        lacks, more = [name for name in state if name not in own], [name for name in own if name not in state]
        told = [f"It lacks {_listed(lacks)}."] * bool(lacks) + [f"It has also {_listed(more)}."] * bool(more)
        why = " ".join(told or [shorten(str(error), 300)])
        raise NotAModuleError(f"The module cannot take the weights it should have. {why}") from None


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(f"`{name}`" for name in names[:NAMES_SHOWN])
    return f"{shown} and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else shown


def _described(module: nn.Module, folder: Path) -> Result[Described]:
    state = module.state_dict()
    names = {name for name, _ in module.named_parameters(remove_duplicate=False)}
    parameters = tuple(name for name in state if name in names)
    buffers = tuple(name for name in state if name not in names)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    if sum(path.stat().st_size for path in files) > MAX_FILE_BYTES:
        raise NotAModuleError(f"The answer wrote more than {MAX_FILE_BYTES:,} bytes of files.")
    tensors = [to_raw(state[name], f"`{name}`") for name in (*parameters, *buffers)]
    tensors += [RawTensor.of_bytes(path.read_bytes()) for path in files]
    return Result(Described(parameters, buffers, tuple(path.relative_to(folder).as_posix() for path in files)), tensors)
