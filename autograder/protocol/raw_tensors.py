"""Raw tensors: dtype, shape, strides and bytes, and the arithmetic that says whether they fit together.

A tensor's record in a message:

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

import struct
from dataclasses import dataclass

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
    "complex64": 8,
    "complex128": 16,
}
"""Name of a dtype (an attribute of `torch`) to the size of one element in bytes."""

MAX_DIMENSIONS = 16
_NAMES = tuple(DTYPES)
_HEAD = struct.Struct("<BBB5xQQ")


@dataclass(frozen=True)
class RawTensor:
    """A tensor as data: what both sides can check before either makes a tensor of it.

    `data` holds the storage from the first element on: `extent` elements, which strides may visit more than once.
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

    @property
    def extent(self) -> int:
        """Return the number of elements from the first that is visited to the last, both included."""
        if 0 in self.shape:
            return 0
        return 1 + sum((n - 1) * s for n, s in zip(self.shape, self.strides, strict=True))


def write_head(tensor: RawTensor, first_byte: int) -> bytes:
    """Return the record of `tensor`, whose bytes start at `first_byte`."""
    rank = len(tensor.shape)
    head = _HEAD.pack(_NAMES.index(tensor.dtype), tensor.shared, rank, first_byte, len(tensor.data))
    return head + struct.pack(f"<{2 * rank}q", *tensor.shape, *tensor.strides)


Head = tuple[str, bool, int, int, tuple[int, ...], tuple[int, ...]]
"""A record that was read: dtype, shared, first byte, number of bytes, shape, strides."""


def read_head(payload: memoryview, at: int) -> tuple[int, Head]:
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
