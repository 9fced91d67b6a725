"""Module: an `nn.Module`, built by the answer, with the host's state in it."""

from collections.abc import Mapping
from dataclasses import dataclass

from autograder.protocol.contract import Request, TensorName
from autograder.protocol.requests.callable import Arguments, Called, TensorCall


@dataclass(frozen=True)
class Described:
    """The contents of a fresh module, by name; the tensors and the bytes of files come in this order."""

    parameters: tuple[TensorName, ...]
    buffers: tuple[TensorName, ...]
    files: tuple[TensorName, ...]
    """Files that the entry point wrote into the folder that it was given."""


@dataclass(frozen=True)
class DescribeModule(Request[Described]):
    """Build the module and tell what it holds."""

    build: Arguments
    training: bool


@dataclass(frozen=True)
class CallModule(Request[Called]):
    """Build the module, load the state into it, and call it; it takes the precision of the state."""

    build: Arguments
    training: bool
    state: Mapping[str, int]
    """The names of the state to the numbers of their tensors."""
    by: tuple[str, ...]
    """Parameters to differentiate by as well, after the tensors of the call."""
    call: TensorCall
