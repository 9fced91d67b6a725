"""Decode JSON values into dataclasses, strictly, and encode dataclasses as JSON values.

The type hints of a dataclass define the accepted values:

    None, bool, int, float, str     exactly this type; a bool is no int, an int is no float
    bytes                           a string in base64
    Literal["a", "b"]               one of these values
    a StrEnum                       the string of one of its members
    tuple[T, ...], tuple[A, B]      a list
    Mapping[str, T], dict[str, T]   an object with any keys
    a dataclass                     an object with a key for each field, and no other key
    A | B                           forms with different JSON types, such as `int | None`
    Annotated[T, Within(1, 9)]      a number within these limits, or a string, list or object of such a length
    Any                             any JSON value

Everything else raises a `ProtocolError`. The data comes from `json`, which creates no other types of objects.
"""

import base64
import binascii
import functools
import types
from collections.abc import Mapping
from dataclasses import dataclass, is_dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from autograder.protocol.frames import ProtocolError

T = TypeVar("T")
SCALARS = (bool, int, float, str, types.NoneType)


@dataclass(frozen=True)
class Within:
    """The limits of a number or of a length, both included."""

    least: int
    most: int


def encode(value: object) -> object:
    """Return a JSON value for `value`; every message uses this as the `default` function of `json.dumps`."""
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no part of a message")


def decode(data: object, kind: type[T]) -> T:
    """Convert `data` to a value of type `kind`; raises `ProtocolError` if that is not possible."""
    try:
        decoded: T = _decoded(data, kind)
    except RecursionError:  # a recursive dataclass may be nested too deeply
        raise ProtocolError("a value that is nested too deeply") from None
    return decoded


def _decoded(data: Any, kind: Any) -> Any:
    if kind is Any:
        return data
    form, origin, arguments = _forms(kind).get(type(data)), get_origin(kind), get_args(kind)
    if form is None:
        expected = " or ".join(form.__name__ for form in _forms(kind))
        raise ProtocolError(f"a {type(data).__name__} where a message has a {expected}")
    if form is not kind:  # a member of a union
        return _decoded(data, form)
    if origin is Annotated:
        return _limited(_decoded(data, arguments[0]), arguments[1])
    if origin is Literal and data not in arguments:
        raise ProtocolError(f"a value that is none of {', '.join(map(repr, arguments))}")
    if is_dataclass(kind):
        return _record(data, kind)
    if _is_str_enum(kind):
        return _member(data, kind)
    if kind is bytes:
        return _bytes(data)
    if origin is tuple:
        return _tuple(data, arguments)
    if origin in (dict, Mapping):
        return {key: _decoded(value, arguments[1]) for key, value in data.items()}
    return data


@functools.cache
def _forms(kind: Any) -> Mapping[type, Any]:
    """Return the types that `json` may give to an encoded value of type `kind`, each with the matching part of `kind`.

    Raises `TypeError` for a hint that messages cannot use.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        parts = [(form, part) for part in arguments for form in _forms(part)]
        if len(dict(parts)) < len(parts):
            raise TypeError(f"two of {arguments} have one form in JSON")
        return dict(parts)
    if origin is Annotated:
        return dict.fromkeys(_forms(arguments[0]), kind)
    if origin is Literal:
        return {type(value): kind for value in arguments}
    if kind is bytes or _is_str_enum(kind):
        return {str: kind}
    if origin is tuple:
        return {list: kind}
    if is_dataclass(kind) or (origin in (dict, Mapping) and arguments[0] is str):
        return {dict: kind}
    if kind in SCALARS:
        return {kind: kind}
    raise TypeError(f"no message may hold {kind}")


def _is_str_enum(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, StrEnum)


def _member(text: str, kind: type[StrEnum]) -> StrEnum:
    try:
        return kind(text)
    except ValueError:
        raise ProtocolError(f"a value that is none of {', '.join(kind)}") from None


def _limited(value: Any, limits: Within) -> Any:
    if not limits.least <= (value if type(value) in (int, float) else len(value)) <= limits.most:
        raise ProtocolError(f"a {type(value).__name__} that is not within {limits.least} and {limits.most:,}")
    return value


def _record(data: Mapping[str, Any], kind: Any) -> Any:
    hints = _hints(kind)
    if data.keys() != hints.keys():
        raise ProtocolError(f"an object that has not just the fields of {kind.__name__}")
    return kind(**{name: _decoded(data[name], hint) for name, hint in hints.items()})


@functools.cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return get_type_hints(kind, include_extras=True)


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("a text that is no base64") from None


def _tuple(data: list[Any], kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    if kinds[1:] == (Ellipsis,):
        return tuple(_decoded(item, kinds[0]) for item in data)
    if len(data) != len(kinds):
        raise ProtocolError(f"a list of {len(data)} where a message has {len(kinds)}")
    return tuple(map(_decoded, data, kinds))
