"""Find the device of the tensors that a function uses, without running it."""

import functools
import sys
from collections.abc import Iterable, Iterator, Mapping
from types import CodeType, FunctionType, MethodType
from typing import Any

DEEPEST, MOST_VALUES = 5, 2_000  # how far to look before the answer is that no tensor was found


def device_reached(values: Iterable[object]) -> str | None:
    """Return the device of the tensors among `values`, and of those that functions and modules among them use.

        >>> import torch
        >>> x = torch.ones(2)
        >>> device_reached([lambda: x.relu()]), device_reached([lambda: 3])
        ('cpu', None)

    Functions use what their closures, defaults and global names hold. A tensor on a GPU decides over one on the CPU.
    """
    torch = sys.modules.get("torch")  # a program that uses tensors has loaded it
    if torch is None:
        return None
    devices: list[str] = []
    seen: set[int] = set()
    level = list(values)
    for _ in range(DEEPEST):
        deeper: list[object] = []
        for value in level:
            if id(value) in seen or len(seen) >= MOST_VALUES:
                continue
            seen.add(id(value))
            if isinstance(value, torch.Tensor):
                devices.append(str(value.device))
            else:
                deeper += _parts(value, torch)
        level = deeper
    return next((device for device in devices if device.startswith("cuda")), devices[0] if devices else None)


def _parts(value: object, torch: Any) -> Iterator[object]:
    """Yield what a value holds."""
    match value:
        case torch.nn.Module():
            yield from value.parameters()
            yield from value.buffers()
        case functools.partial():
            yield from (value.func, *value.args, *value.keywords.values())
        case MethodType():
            yield from (value.__self__, value.__func__)
        case FunctionType():
            yield from _used_by(value)
        case Mapping():
            yield from list(value.values())
        case list() | tuple() | set():
            yield from value
        case type() | str() | bytes():
            return
        case _:
            yield from list(getattr(value, "__dict__", {}).values()) if _is_plain(value) else ()


def _used_by(function: FunctionType) -> Iterator[object]:
    if (function.__module__ or "").partition(".")[0] == "torch":  # its globals are no program's
        return
    yield from function.__defaults__ or ()
    yield from (function.__kwdefaults__ or {}).values()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # a name that has no value yet
            continue
    for name in _names(function.__code__):
        if name in function.__globals__:
            yield function.__globals__[name]


def _names(code: CodeType) -> Iterator[str]:
    """Yield the names that a function and the functions inside it read from outside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


def _is_plain(value: object) -> bool:
    """Tell whether a value is an object of a program, and no module of Python."""
    return not isinstance(value, type(sys))
