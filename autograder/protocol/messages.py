"""Messages: a JSON body and raw tensors, packed into the payload of one frame.

Layout of a payload: body length (u32), body (JSON, UTF-8), number of tensors (u32), their records, their bytes. A
body refers to tensor number `i` as `{"tensor": i}`. `parse` refuses duplicate keys, bodies nested too deeply or
too long, numbers that are not finite, and bytes left over, so that one payload has exactly one meaning. See
`autograder.protocol.contract` for the contents of a body.

The record of a tensor:

    size  field
       1  dtype code, its index in `DTYPES`
       1  storage: 0 the bytes follow in this message, 1 they lie in the shared memory that came with it
       1  number of dimensions, at most `MAX_DIMENSIONS`
       5  zero
       8  first byte, counted from the start of the message's bytes or of the shared memory
       8  number of bytes
  8 each  shape
  8 each  strides, in elements, none negative
"""

import json
import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Self

from autograder.protocol.decoder import encode
from autograder.protocol.frames import ProtocolError

DTYPES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
}
"""Name of a dtype (an attribute of `torch`) to the size of one element in bytes."""
_NAMES = tuple(DTYPES)

MAX_BODY_BYTES = 4 << 20
MAX_TENSORS = 4096
MAX_DEPTH = 64
MAX_DIGITS = 300
MAX_DIMENSIONS = 16
_COUNT = struct.Struct("<I")
_HEAD = struct.Struct("<BBB5xQQ")
_Head = tuple[str, bool, int, int, tuple[int, ...], tuple[int, ...]]
"""A record that was read: dtype, shared, first byte, number of bytes, shape, strides."""
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_ENCODER = json.JSONEncoder(separators=(",", ":"), default=encode)
_NO_BRACKETS = bytes(set(range(256)) - set(_STEPS))


@dataclass(frozen=True)
class RawTensor:
    """A tensor as data, which both sides can check before they make a tensor of it.

    `data` holds the storage from the first element on: `extent` elements. Strides may reach an element more than once.
    """

    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    data: bytes | bytearray | memoryview
    shared: bool = False

    def __post_init__(self) -> None:
        if self.dtype not in DTYPES:
            raise ProtocolError(f"a tensor of dtype {self.dtype!r}; known are {', '.join(DTYPES)}")
        if len(self.shape) > MAX_DIMENSIONS or len(self.shape) != len(self.strides):
            raise ProtocolError(f"a tensor of shape {self.shape} with strides {self.strides}")
        if any(n < 0 for n in (*self.shape, *self.strides)):
            raise ProtocolError(f"a tensor with a negative size or stride: {self.shape}, {self.strides}")
        needed = self.extent * DTYPES[self.dtype]
        if needed != len(self.data):
            raise ProtocolError(
                f"a {self.dtype} tensor of shape {self.shape} with {len(self.data):,} bytes, "
                f"where {needed:,} are needed"
            )

    @classmethod
    def of_bytes(cls, data: bytes) -> Self:
        """Return the bytes of a file as one tensor."""
        return cls("uint8", (len(data),), (1,), data)

    @property
    def extent(self) -> int:
        """Return the number of elements from the first that is visited to the last, both included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


@dataclass(frozen=True)
class Message:
    """The body and the tensors of one payload."""

    body: Mapping[str, Any]
    tensors: tuple[RawTensor, ...] = ()


def serialise(
    body: Mapping[str, object] | object, tensors: Sequence[RawTensor] = (), shared_bytes: Sequence[int] = ()
) -> bytes:
    """Pack a message whose body is a dataclass, or a mapping from names to dataclasses and JSON values.

    `shared_bytes` gives, for each shared tensor in turn, where it starts in the shared memory.
    """
    text = _ENCODER.encode(body).encode()
    heads, blobs, inline_at = [], [], 0
    offsets = iter(shared_bytes)
    for tensor in tensors:
        heads.append(_write_head(tensor, next(offsets) if tensor.shared else inline_at))
        if not tensor.shared:
            blobs.append(bytes(tensor.data))
            inline_at += len(tensor.data)
    return b"".join([_COUNT.pack(len(text)), text, _COUNT.pack(len(heads)), *heads, *blobs])


def parse(payload: bytes | bytearray | memoryview, shared: memoryview | None = None) -> Message:
    """Return the message in a payload that may come from an attacker; raises `ProtocolError` for an invalid payload."""
    view = memoryview(payload)
    body_length, at = _count(view, 0, "body length", MAX_BODY_BYTES)
    body = _parse_body(bytes(view[at : at + body_length]), body_length)
    at += body_length
    tensor_count, at = _count(view, at, "number of tensors", MAX_TENSORS)
    heads = []
    for _ in range(tensor_count):
        at, head = _read_head(view, at)
        heads.append(head)
    tensors, used = [], 0
    for dtype, is_shared, first, count, shape, strides in heads:
        if is_shared:
            data = _slice(shared, first, count)
        elif first != used:
            raise ProtocolError("tensor bytes that overlap or leave gaps")
        else:
            data = _slice(view[at:], first, count)
            used += count
        tensors.append(RawTensor(dtype, shape, strides, data, is_shared))
    if at + used != len(view):
        raise ProtocolError(f"a message with {len(view) - at - used:,} bytes too many")
    return Message(body, tuple(tensors))


def _write_head(tensor: RawTensor, first_byte: int) -> bytes:
    """Return the record of `tensor`, whose bytes start at `first_byte`."""
    rank = len(tensor.shape)
    head = _HEAD.pack(_NAMES.index(tensor.dtype), tensor.shared, rank, first_byte, len(tensor.data))
    return head + struct.pack(f"<{2 * rank}q", *tensor.shape, *tensor.strides)


def _read_head(payload: memoryview, at: int) -> tuple[int, _Head]:
    """Read the record at byte `at`; return the byte after it, and the record."""
    try:
        code, shared, rank, first, count = _HEAD.unpack_from(payload, at)
        if code >= len(_NAMES) or shared > 1 or rank > MAX_DIMENSIONS:
            raise ProtocolError(f"a tensor record with dtype code {code}, storage {shared}, {rank} dimensions")
        numbers = struct.unpack_from(f"<{2 * rank}q", payload, at + _HEAD.size)
    except struct.error:
        raise ProtocolError("a tensor record that ends too early") from None
    end = at + _HEAD.size + 16 * rank
    return end, (_NAMES[code], bool(shared), first, count, numbers[:rank], numbers[rank:])


def _count(view: memoryview, at: int, what: str, limit: int) -> tuple[int, int]:
    try:
        (number,) = _COUNT.unpack_from(view, at)
    except struct.error:
        raise ProtocolError(f"a message that ends before its {what}") from None
    if number > limit:
        raise ProtocolError(f"a message whose {what} is {number:,}, where at most {limit:,} is accepted")
    return number, at + _COUNT.size


def _slice(view: memoryview | None, first: int, count: int) -> memoryview:
    if view is None or first + count > len(view):
        raise ProtocolError("a tensor whose bytes lie outside the message")
    return view[first : first + count]


def _parse_body(text: bytes, length: int) -> Mapping[str, Any]:
    if len(text) != length:
        raise ProtocolError("a message that ends inside its body")
    if not _shallow(text):
        raise ProtocolError(f"a body nested deeper than {MAX_DEPTH} levels")
    try:
        # Decoded here, because `json` may read bytes as UTF-16 or UTF-32, where `_shallow` counts brackets wrongly.
        body = json.loads(
            text.decode(), object_pairs_hook=_unique, parse_constant=_finite, parse_float=_finite, parse_int=_whole
        )
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a body that is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise ProtocolError(f"a body that is a {type(body).__name__}, not an object")
    return body


def _shallow(text: bytes) -> bool:
    """Tell whether brackets never nest deeper than `MAX_DEPTH`; brackets inside strings do not count.

    In valid JSON, a backslash occurs only inside strings. After escaped backslashes and quotation marks are removed,
    every second quotation mark begins a string. A regular expression for strings would take several times as long, or
    quadratic time if it backtracks.
    """
    plain = text.replace(rb"\\", b"").replace(rb"\"", b"")
    brackets = b"".join(plain.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    return max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) <= MAX_DEPTH


def _finite(text: str) -> float:
    """Return the number, or raise `ValueError` if it is not finite: a NaN error never exceeds a limit."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"a number that is {text[:20]}")
    return number


def _whole(text: str) -> int:
    """Return the integer, or raise `ValueError` if it has too many digits to convert to a float."""
    if len(text) > MAX_DIGITS:
        raise ValueError(f"an integer of {len(text):,} digits")
    return int(text)


def _unique(pairs: list[tuple[str, Any]]) -> Mapping[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object with a key that occurs twice")
    return found
