"""Check the pickles of a TorchScript archive without unpickling them: opcode by opcode, as data.

torch.jit.load reads them in C++. This module checks every opcode, every name and every tensor's extent first, and
does not rely on checks in that reader.
"""

import itertools
import pickletools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from autograder.protocol import DTYPES, ProtocolError, RawTensor

MAX_OPCODES = 20_000
STORAGES = {
    "torch FloatStorage": "float32",
    "torch DoubleStorage": "float64",
    "torch HalfStorage": "float16",
    "torch BFloat16Storage": "bfloat16",
    "torch LongStorage": "int64",
    "torch IntStorage": "int32",
    "torch BoolStorage": "bool",
}
REBUILT = "torch._utils _rebuild_tensor_v2"
NAMES = {REBUILT, "collections OrderedDict", *STORAGES} | {
    f"torch.jit._pickle build_{kind}list" for kind in ("int", "double", "bool", "tensor")
}
TYPED = "torch.jit._pickle restore_type_tag"
"""A call that gives a container the type named in a string, without checking its content."""

CLASSES = re.compile(r"__torch__(?!\.torch\.classes\b)[\w.]* \w+")  # never classes that C++ registers
_VALUES = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_LITERALS = {"BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE", "SHORT_BINUNICODE"}
_MARK = object()


class PickleRefusedError(Exception):
    """A pickle holds something other than plain data, tensors and instances of the archive's own classes."""


@dataclass(frozen=True)
class _Name:
    """The name in a GLOBAL opcode; it is never looked up."""

    text: str


@dataclass(frozen=True)
class _Storage:
    """A file of the archive that holds numbers."""

    dtype: str
    bytes: bytes


def require_plain_pickle(data: bytes, storages: Mapping[str, bytes]) -> None:
    """Raise `PickleRefusedError` unless `torch.jit.save` could have written this pickle for these `storages`."""
    try:
        read = itertools.islice(pickletools.genops(data), MAX_OPCODES + 1)  # a hostile pickle may have millions
        opcodes = [(opcode.name, argument) for opcode, argument, _ in read]
        if len(opcodes) > MAX_OPCODES:
            raise PickleRefusedError(f"a pickle of more than {MAX_OPCODES:,} opcodes")
        machine = _Machine(storages)
        for name, argument in opcodes:
            machine.step(name, argument)
    except (ValueError, IndexError, KeyError, TypeError, AttributeError, OverflowError):
        raise PickleRefusedError("a pickle that is not well formed") from None


@dataclass
class _Machine:
    """The pickle machine on inert values: tuples, lists and names."""

    storages: Mapping[str, bytes]
    stack: list[Any] = field(default_factory=list)
    memo: dict[int, Any] = field(default_factory=dict)

    def step(self, name: str, argument: Any) -> None:
        """Execute one opcode."""
        if name in _VALUES:
            self.stack.append(_VALUES[name])
        elif name in _LITERALS:
            self.stack.append(argument)
        elif name in ("EMPTY_LIST", "EMPTY_DICT"):
            self.stack.append([])
        elif name == "MARK":
            self.stack.append(_MARK)
        elif name == "GLOBAL":
            self._name(argument)
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            self.stack.append(self.memo[argument])
        elif name not in ("PROTO", "STOP"):
            self._combine(name)

    def _name(self, text: str) -> None:
        if text == TYPED:
            raise PickleRefusedError("a dict, or a list of lists, as an attribute of the module")
        if text not in NAMES and not CLASSES.fullmatch(text):
            raise PickleRefusedError(f"the name {text[:80]!r}")
        self.stack.append(_Name(text))

    def _combine(self, name: str) -> None:
        combine: dict[str, Callable[[], None]] = {
            "TUPLE": lambda: self.stack.append(tuple(self._to_mark())),
            "TUPLE1": lambda: self._tuple(1),
            "TUPLE2": lambda: self._tuple(2),
            "TUPLE3": lambda: self._tuple(3),
            "APPENDS": lambda: self._extend(self._to_mark()),
            "APPEND": lambda: self._extend([self.stack.pop()]),
            "SETITEMS": lambda: self._extend(self._to_mark()),
            "SETITEM": lambda: self._extend([self.stack.pop(), self.stack.pop()]),
            "NEWOBJ": lambda: self._tuple(2),
            "BUILD": lambda: self._tuple(2),
            "BINPERSID": self._storage,
            "REDUCE": self._call,
        }
        if name not in combine:
            raise PickleRefusedError(f"the opcode {name}")
        combine[name]()

    def _to_mark(self) -> list[Any]:
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _tuple(self, count: int) -> None:
        items = tuple(self.stack[-count:])
        if len(items) < count or _MARK in items:
            raise PickleRefusedError("a tuple of more than there is")
        self.stack[-count:] = [items]

    def _extend(self, items: list[Any]) -> None:
        self.stack[-1].extend(items)

    def _storage(self) -> None:
        word, kind, key, device, count = self.stack.pop()
        data, dtype = self.storages[key], STORAGES[kind.text]
        if (word, device) != ("storage", "cpu") or count * DTYPES[dtype] != len(data):
            raise PickleRefusedError(f"a storage {key!r} of another size than its file")
        self.stack.append(_Storage(dtype, data))

    def _call(self) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if function.text not in NAMES or function.text in STORAGES:
            raise PickleRefusedError(f"a call of {function.text}")
        if function.text == REBUILT:
            _require_inside(*arguments[:4])
        self.stack.append((function, arguments))


def _require_inside(storage: _Storage, offset: int, shape: tuple[int, ...], strides: tuple[int, ...]) -> None:
    """Raise unless a tensor's last element lies in its storage."""
    size = DTYPES[storage.dtype]
    if any(type(n) is not int or not 0 <= n < 1 << 40 for n in (offset, *shape, *strides)):
        raise PickleRefusedError("a tensor of an impossible size")
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
    if (offset + extent) * size > len(storage.bytes):
        raise PickleRefusedError("a tensor larger than its storage")
    try:
        inside = memoryview(storage.bytes)[offset * size : (offset + extent) * size]  # no copy: they may be thousands
        RawTensor(storage.dtype, shape, strides, inside)
    except ProtocolError as error:
        raise PickleRefusedError(str(error)) from None
