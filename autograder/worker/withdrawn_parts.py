"""Take out of this worker what does an exercise's task by itself: operators of PyTorch, and functions of its C++ part.

Observed functions can run where nobody observes: in a thread, in another process, with the profiler switched off. What
is withdrawn runs nowhere: an operator has a kernel that raises, for each backend, its exported code is overwritten, and
a function of C++ is removed.
Nothing in the worker holds what was there before.
"""

import ctypes
import sys
import warnings
from collections.abc import Collection, Iterator
from types import ModuleType
from typing import Any

import torch

from autograder.worker.source import AnswerError
from autograder.worker.withdrawn_code import remove_code

OPERATOR = "aten::"
IN_C = "torch._C."
BACKENDS = (
    "CPU",
    "AutogradCPU",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutograd",
    "FuncTorchBatched",
    "FuncTorchVmapMode",
    "CompositeImplicitAutogradNestedTensor",
    "NestedTensorCPU",
    "AutogradNestedTensor",
)
"""Dispatch keys below which an operator may have a kernel, whether or not the operator that is withdrawn has one."""


class WithdrawnError(AnswerError):
    """The answer called an operator that does the task by itself."""


def is_withdrawn(place: str) -> bool:
    """Tell whether a place of `Exercise.refused` names what is withdrawn, not a file whose functions are observed.

    >>> is_withdrawn("aten::relu"), is_withdrawn("torch/nn/functional.py:relu")
    (True, False)
    """
    return place.startswith((OPERATOR, IN_C))


def withdraw(places: Collection[str]) -> None:
    """Withdraw operators whose names begin with "aten::...", and functions such as "torch._C._jit_trace_graph"."""
    begins = tuple(place for place in places if place.startswith(OPERATOR))
    if begins:
        _withdraw_operators([name for name in torch._C._dispatch_get_all_op_names() if name.startswith(begins)])
        remove_code([name.removeprefix(OPERATOR) for name in begins])
    for place in places:
        if place.startswith(IN_C):
            _remove(place)


def _withdraw_operators(names: Collection[str]) -> None:
    library = torch._C._dispatch_library("IMPL", "aten", "")
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(library))  # a kernel goes with its library, which nobody can reach
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # each kernel takes the place of another one, as it should
        for name in names:
            for backend in BACKENDS:
                library.impl(name.removeprefix(OPERATOR), backend, _raising(name))


def _raising(name: str) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise WithdrawnError(f"Compute it by hand: {name} does this task by itself, and is refused here")

    return refuse


def _remove(place: str) -> None:
    """Remove a function of C++ from the class or module that has it, and from every module that imported it."""
    owner_name, _, name = place.rpartition(".")
    owner: Any = torch
    for part in owner_name.split(".")[1:]:
        owner = getattr(owner, part)
    removed = getattr(owner, name)
    delattr(owner, name)
    for module, own_name in [*_holders(removed)]:
        delattr(module, own_name)


def _holders(removed: object) -> Iterator[tuple[ModuleType, str]]:
    for module in [*sys.modules.values()]:
        if type(module) is ModuleType:
            yield from ((module, name) for name, value in [*vars(module).items()] if value is removed)
