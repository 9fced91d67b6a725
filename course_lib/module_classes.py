"""Tell what the class of a module does: whether it runs PyTorch's code alone, and whether that reads the mode."""

import functools
import inspect
from collections.abc import Iterator
from types import CodeType
from typing import Any

from torch import nn

# What a subclass may define without any change of what a call does, and what Python adds to each class.
_APART_FROM_CALLS = frozenset({"__init__", "extra_repr", "__repr__", "__dict__", "__weakref__"})


@functools.lru_cache(maxsize=4096)
def runs_torchs_code(kind: type, packages: tuple[str, ...] = ("torch.",)) -> bool:
    """Return whether a call of a module runs code of these packages only: a subclass replaces no method but `__init__`.

    >>> runs_torchs_code(type("Mine", (nn.Dropout,), {})), runs_torchs_code(type("Mine", (nn.ReLU,), {"forward": len}))
    (True, False)
    """
    foreign = [cls for cls in kind.__mro__ if cls is not object and not _is_of(cls, packages)]
    others = {name: cls for cls in kind.__mro__ if cls not in foreign for name in vars(cls)}
    return not any(_changes_a_call(name, one, name in others) for cls in foreign for name, one in vars(cls).items())


def _changes_a_call(name: str, one: object, replaces: bool) -> bool:
    if name in _APART_FROM_CALLS:
        return False
    return hasattr(one, "__set__") or (replaces and (callable(one) or hasattr(one, "__get__")))


def torchs_class(kind: type) -> type | None:
    """Return the class of PyTorch that a class is, or that it inherits from first; None without any."""
    return next((cls for cls in kind.__mro__ if _is_of(cls, ("torch.",))), None)


def _is_of(kind: type, packages: tuple[str, ...]) -> bool:
    return f"{kind.__module__}.".startswith(packages)


@functools.lru_cache(maxsize=4096)
def reads_its_mode(kind: type) -> bool:
    """Return whether the code of a class mentions `training`; if not, a call does the same in both modes.

    >>> reads_its_mode(nn.Dropout), reads_its_mode(nn.Linear)
    (True, False)
    """
    methods = (one for cls in kind.__mro__ if cls not in (nn.Module, object) for one in vars(cls).values())
    return any("training" in code.co_names for method in methods for code in _codes(method))


def _codes(method: Any) -> Iterator[CodeType]:
    """Yield the code of a method or property, below its decorators, and of the functions inside."""
    code = getattr(inspect.unwrap(getattr(method, "fget", method)), "__code__", None)
    todo = [code] if isinstance(code, CodeType) else []
    while todo:
        yield (code := todo.pop())
        todo += [one for one in code.co_consts if isinstance(one, CodeType)]
