"""Note each operator that starts work on a device: which memory it reads and writes, and which Python values it holds.

Nothing is concluded from an operator's name: its schema says what it writes, its tags whether the host waits for data.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

_TORCH, _HERE = str(Path(torch.__file__).parent), str(Path(__file__).parent)
_LIBRARY = str(Path(sys.modules["contextlib"].__file__ or "").parent)
_HOST_TAGS = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)


@dataclass(frozen=True)
class Launch:
    """One operator that ran; an address is that of a storage."""

    line: int
    """The line of the program that asked for it."""
    operator: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]
    shapes: tuple[tuple[int, ...], ...]
    """Of the tensors among its arguments."""
    numbers: tuple[float, ...]
    """Python numbers among its arguments: a capture keeps them as they are."""
    memory_bytes: int
    """What it reads and writes: the sizes of arguments and results."""
    host_read: bool = False
    """Whether the host waits for a value that the device computes."""
    own_generator: bool = False
    """Whether it draws from a generator that the program passed."""

    def as_dict(self) -> dict[str, Any]:
        """Return the launch as plain data."""
        return asdict(self)


class LaunchRecorder(TorchDispatchMode):
    """Describe each operator that launches work; views start none and are left out."""

    def __init__(self) -> None:
        super().__init__()
        self.launches: list[Launch] = []
        self.alive: list[torch.Tensor] = []  # so that no address is given away twice

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        options = kwargs or {}
        result = func(*args, **options)
        self.alive += tensors_in((args, options, result))
        if not starts_nothing(func, args, options, result):
            self.launches.append(described(func, args, options, result))
        return result


def recording(function: Callable[..., Any], *inputs: Any) -> tuple[Launch, ...]:
    """Return the launches of one eager call, with lines counted from the function's first line, which is 1.

    >>> (launch,) = recording(lambda x: x * 2, torch.ones(3))
    >>> launch.operator, launch.line, launch.numbers, launch.memory_bytes
    ('aten.mul.Tensor', 1, (2,), 24)
    """
    with LaunchRecorder() as recorder:
        function(*inputs)
    code = getattr(function, "__code__", None)
    first = code.co_firstlineno - 1 if code else 0
    return tuple(Launch(**{**vars(launch), "line": launch.line - first}) for launch in recorder.launches)


def described(func: Any, args: Sequence[Any], options: Mapping[str, Any], result: Any) -> Launch:
    """Return one call of an operator as a `Launch`."""
    given, made = tensors_in((args, options)), tensors_in(result)
    written = [*written_by(func, args, options), *made]
    leaves = tree_leaves((args, options))
    return Launch(
        line=_calling_line(),
        operator=str(func),
        reads=_addresses(given),
        writes=_addresses(written),
        shapes=tuple(tuple(tensor.shape) for tensor in given),
        numbers=tuple(leaf for leaf in leaves if isinstance(leaf, int | float) and not isinstance(leaf, bool)),
        memory_bytes=sum(tensor.nbytes for tensor in given) + sum(tensor.nbytes for tensor in made),
        host_read=reads_on_host(func),
        own_generator=any(isinstance(leaf, torch.Generator) for leaf in leaves),
    )


def reads_on_host(func: Any) -> bool:
    """Return whether the host needs a value of the device to go on, such as `.item()` or a mask as index."""
    return any(tag in func.tags for tag in _HOST_TAGS)


def written_by(func: Any, args: Sequence[Any], options: Mapping[str, Any]) -> list[torch.Tensor]:
    """Return the arguments that an operator writes, by its schema."""
    values = {argument.name: value for argument, value in zip(func._schema.arguments, args, strict=False)}
    values.update(options)
    names = [each.name for each in func._schema.arguments if each.alias_info and each.alias_info.is_write]
    return tensors_in([values.get(name) for name in names])


def starts_nothing(func: Any, args: Sequence[Any], options: Mapping[str, Any], result: Any) -> bool:
    """Return whether an operator only describes memory anew, or reserves it, and so starts no kernel."""
    if reads_on_host(func):
        return False
    if written_by(func, args, options):
        return False
    made = tensors_in(result)
    return not made or set(_addresses(made)) <= set(_addresses(tensors_in((args, options)))) or reserves(func)


def reserves(func: Any) -> bool:
    """Return whether an operator reserves memory and writes nothing there, such as `aten.empty_like.default`."""
    return "empty" in str(func)


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Return the tensors in nested tuples, lists and dicts."""
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor)]


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's storage, which its views share; on the device meta a number in its place."""
    storage = tensor.untyped_storage()
    return storage._cdata if tensor.is_meta else storage.data_ptr()


def _addresses(tensors: Sequence[torch.Tensor]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(address_of(tensor) for tensor in tensors))


def _calling_line() -> int:
    """Return the line of the nearest caller that is neither PyTorch, nor Python's library, nor this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_TORCH, _HERE, _LIBRARY)):
        frame = frame.f_back
    return frame.f_lineno
