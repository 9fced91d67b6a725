"""Decode JSON values into dataclasses, strictly, and encode dataclasses as JSON values.

The type hints of a dataclass say all that is accepted:

    None, bool, int, float, str     exactly this type; a bool is no int, an int is no float
    bytes                           a string in base64
    Literal["a", "b"]               one of these values
    tuple[T, ...], tuple[A, B]      a list
    Mapping[str, T], dict[str, T]   an object with any keys
    a dataclass                     an object with a key for each field, and no other key
    A | B                           forms with different JSON types, such as `int | None`
    Annotated[T, Within(1, 9)]      a number within these limits, or a string, list or object of such a length
    Any                             any JSON value

Everything else is refused with a `ProtocolError`. The data itself comes from `json`, which makes no other objects.
"""

import base64
import binascii
import functools
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from autograder.protocol.frames import ProtocolError

T = TypeVar("T")
Decode = Callable[[Any], Any]
SCALARS = (bool, int, float, str, types.NoneType)


@dataclass(frozen=True)
class Within:
    """The limits of a number, or of a length; both are still accepted."""

    least: int
    most: int


def decode(data: object, kind: type[T]) -> T:
    """Return the value of type `kind` that `data` stands for; raises `ProtocolError` if it stands for none."""
    try:
        decoded: T = _decoder(cast("Any", kind))(data)
    except RecursionError:  # a dataclass that holds itself may come nested without end
        raise ProtocolError("a value that is nested too deeply") from None
    return decoded


def encode(value: object) -> object:
    """Return what `json.dumps` writes in place of `value`: the `default` function of every message."""
    if is_dataclass(value) and not isinstance(value, type):
        return vars(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is no part of a message")


@functools.cache
def _decoder(kind: Any) -> Decode:
    """Return the decoder of a type hint; raises `TypeError` for a hint that no message may have."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return _unchanged
    if kind in SCALARS:
        return _scalar(kind)
    if kind is bytes:
        return _bytes
    if is_dataclass(kind):
        return _record(kind)
    if origin is Literal:
        return _literal(arguments)
    if origin is Annotated:
        return _limited(_decoder(arguments[0]), arguments[1])
    if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
        return _tuple(_decoder(arguments[0]))
    if origin is tuple:
        return _fixed_tuple(tuple(map(_decoder, arguments)))
    if origin in (dict, Mapping) and arguments[0] is str:
        return _mapping(_decoder(arguments[1]))
    if origin in (Union, types.UnionType):
        return _union(arguments)
    raise TypeError(f"no message may hold {kind}")


def _unchanged(data: Any) -> Any:
    return data


def _scalar(kind: type) -> Decode:
    def read(data: Any) -> Any:
        if type(data) is not kind:
            raise _refused(data, kind.__name__)
        return data

    return read


def _bytes(data: Any) -> bytes:
    if type(data) is not str:
        raise _refused(data, "a string")
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ProtocolError("a text that is no base64") from None


def _literal(values: tuple[Any, ...]) -> Decode:
    def read(data: Any) -> Any:
        for value in values:
            if type(data) is type(value) and data == value:
                return data
        raise _refused(data, f"one of {', '.join(map(repr, values))}")

    return read


def _limited(decoder: Decode, limits: Within) -> Decode:
    def read(data: Any) -> Any:
        value = decoder(data)
        if not limits.least <= (value if type(value) in (int, float) else len(value)) <= limits.most:
            raise ProtocolError(f"a {type(data).__name__} that is not within {limits.least} and {limits.most:,}")
        return value

    return read


def _tuple(decoder: Decode) -> Decode:
    def read(data: Any) -> Any:
        if type(data) is not list:
            raise _refused(data, "a list")
        return tuple(map(decoder, data)) if data and decoder is not _unchanged else tuple(data)

    return read


def _fixed_tuple(decoders: tuple[Decode, ...]) -> Decode:
    def read(data: Any) -> Any:
        if type(data) is not list or len(data) != len(decoders):
            raise _refused(data, f"a list of {len(decoders)}")
        return tuple(decoder(item) for decoder, item in zip(decoders, data, strict=True))

    return read


def _mapping(decoder: Decode) -> Decode:
    def read(data: Any) -> Any:
        if type(data) is not dict:
            raise _refused(data, "an object")
        return data if decoder is _unchanged else {key: decoder(value) for key, value in data.items()}

    return read


def _record(kind: Any) -> Decode:
    names: frozenset[str] = frozenset(field.name for field in fields(kind))

    @functools.cache  # only when it is needed: a dataclass may hold itself
    def decoders() -> Sequence[tuple[str, Decode]]:
        hints = get_type_hints(kind, include_extras=True)
        return [(field.name, _decoder(hints[field.name])) for field in fields(kind)]

    def read(data: Any) -> Any:
        if type(data) is not dict or data.keys() != names:
            raise _refused(data, f"{kind.__name__} with just its fields")
        return kind(*[decoder(data[name]) for name, decoder in decoders()])

    return read


def _union(kinds: tuple[Any, ...]) -> Decode:
    decoders = {_json_type(kind): _decoder(kind) for kind in kinds}
    if len(decoders) < len(kinds):
        raise TypeError(f"two of {kinds} have one form in JSON")

    def read(data: Any) -> Any:
        decoder = decoders.get(type(data))
        if decoder is None:
            raise _refused(data, " or ".join(form.__name__ for form in decoders))
        return decoder(data)

    return read


def _json_type(kind: Any) -> Any:
    """Return the type of what `json` makes of a value of type `kind`."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _json_type(arguments[0])
    if origin is Literal:
        (form,) = {type(value) for value in arguments}
        return form
    if kind is bytes:
        return str
    if origin is tuple:
        return list
    if origin in (dict, Mapping) or is_dataclass(kind):
        return dict
    if kind in SCALARS:
        return kind
    raise TypeError(f"{kind} cannot stand beside another form")


def _refused(data: object, expected: str) -> ProtocolError:
    return ProtocolError(f"a {type(data).__name__} where a message has {expected}")
