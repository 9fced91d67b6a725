"""Say why the effects of a call cannot be observed: it runs code from outside of PyTorch.

Operators of PyTorch reach its dispatcher, where a `Recorder` sees them. A function of the user may also print, count,
or write into a list, which no run on fake tensors shows.
"""

import builtins
import functools
import math
import operator
import sys
import types
import weakref
from collections.abc import Iterable
from typing import Any

import torch
import torch.nn.functional as F
from torch import fx, nn

from course_lib.module_classes import runs_torchs_code
from course_lib.module_hooks import has_hooks

# Builtin functions that only compute a result. Python has no schemas that could say so.
_PURE_BUILTINS = frozenset(
    (getattr, hasattr, isinstance, len, int, float, bool, str, abs, min, max, round, sum, pow, divmod, tuple, slice)
)
_PYTHON = {"_operator": operator, "math": math, "builtins": builtins}
_UNCALLED = (nn.Module, type, weakref.ref, torch.Tensor)  # can be called, but as a part, or to make a result only
_MODULE = frozenset(vars(nn.Module()))  # tables of parameters, parts and hooks, which are looked at apart
_OURS = ("torch.", "course_lib.fusion.", "course_lib.kernels.", "course_lib.graph.")


def unseen_in_call(target: Any, args: Iterable[object]) -> str:
    """Return why a call of a function cannot be observed, or an empty text if it can be."""
    if not is_observable(target):
        return f"{_name(target)} is a function from outside of PyTorch"
    return _foreign_argument(args)


def unseen_in_method(value: object, name: str, args: Iterable[object]) -> str:
    """Return why a call of a method of `value` cannot be observed, or an empty text."""
    if isinstance(value, torch.Tensor):
        method = getattr(torch.Tensor, name, None)
        own = isinstance(method, types.MethodDescriptorType | types.WrapperDescriptorType) or is_observable(method)
        return _foreign_argument(args) if own else f"Tensor.{name} is a method from outside of PyTorch"
    if type(value).__module__.partition(".")[0] in ("builtins", "torch"):
        return _foreign_argument(args)
    return f"{name} is a method of {type(value).__name__}, a class from outside of PyTorch"


def unseen_in_module(module: nn.Module) -> str:
    """Return why a call of a module cannot be observed: code from elsewhere, hooks, or a script; or an empty text."""
    for part in module.modules():
        cls: Any = type(part)
        kind = cls.__name__
        if isinstance(part, torch.jit.ScriptModule):
            return f"{kind} is a script, which runs outside of Python"
        if not runs_torchs_code(cls, _OURS):
            return f"{kind} is a module from outside of PyTorch"
        if has_hooks(part):
            return f"{kind} has hooks"
        if isinstance(part, fx.GraphModule):
            inner = (unseen_in_call(node.target, ()) for node in part.graph.nodes if node.op == "call_function")
            found = next(filter(None, inner), "")
        else:
            found = _foreign_argument(value for name, value in vars(part).items() if name not in _MODULE)
        if found:
            return found
    return ""


@functools.lru_cache(maxsize=4096)
def is_observable(function: Any) -> bool:
    """Return whether a function is one of PyTorch, or one of Python that only computes a result."""
    if isinstance(function, torch._ops.OpOverload | torch._ops.OpOverloadPacket):
        return True
    if isinstance(function, types.MethodType):
        return is_observable(function.__func__)
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__name__", "")
    if module in _PYTHON:
        known = getattr(_PYTHON[module], name, None) is function
        return known and (module != "builtins" or function in _PURE_BUILTINS)
    if isinstance(function, types.MethodDescriptorType):
        return function.__objclass__.__module__.partition(".")[0] == "torch"
    if module.partition(".")[0] != "torch":
        return module.startswith(_OURS) and _is_defined_in(module, function)
    return isinstance(function, types.BuiltinFunctionType) or _is_defined_in(module, function)


def _is_defined_in(module: str, function: Any) -> bool:
    """Return whether a module holds a function under its name; a wrapper only takes over the name."""
    home = sys.modules.get(module)
    paths = {getattr(function, "__qualname__", ""), getattr(function, "__name__", "")}
    for root in (home, torch, F):
        for path in paths:
            value: Any = root
            for part in path.split("."):
                value = getattr(value, part, None)
            if value is function:
                return True
    return False


def _foreign_argument(values: Iterable[object]) -> str:
    """Return a text about the first function among arguments or attributes that PyTorch would call back."""
    for value in values:
        if isinstance(value, (tuple, list)):
            found = _foreign_argument(value)
        elif isinstance(value, dict):
            found = _foreign_argument(value.values())
        elif callable(value) and not isinstance(value, _UNCALLED) and not is_observable(value):
            found = f"it calls {_name(value)}, a function from outside of PyTorch"
        else:
            continue
        if found:
            return found
    return ""


def _name(function: object) -> str:
    return str(getattr(function, "__name__", None) or getattr(function, "_name", None) or type(function).__name__)
