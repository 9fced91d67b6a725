"""Frames: how bytes travel over the one socket between host and worker.

A frame is a fixed header and a payload:

    offset  size  field
         0     4  magic, b"FUS1"
         4     1  kind, see `FrameKind`
         5     3  zero
         8     8  nonce: drawn by the host for each request, echoed in the reply
        16     8  payload length in bytes

All integers are little-endian. The nonce detects a reply that is sent before its request: the worker cannot know the
number yet.
"""

import socket
import struct
import time
from dataclasses import dataclass
from enum import IntEnum

HEADER = struct.Struct("<4sB3xQQ")
MAGIC = b"FUS1"
MAX_PAYLOAD_BYTES = 1 << 30


class ProtocolError(Exception):
    """The other side sent bytes that are not a message; the exception's text describes the fault."""


class FrameKind(IntEnum):
    """The meaning of a frame. The host sends LOAD and CALL; the worker sends the rest."""

    READY = 1
    LOAD = 2
    LOADED = 3
    CALL = 4
    RESULT = 5
    RAISED = 6


@dataclass(frozen=True)
class Frame:
    """One frame; `fds` holds file descriptors that came with it."""

    kind: FrameKind
    nonce: int
    payload: bytes | bytearray | memoryview
    fds: tuple[int, ...] = ()


def send_frame(sock: socket.socket, frame: Frame) -> None:
    """Write one frame; its file descriptors are attached to the header."""
    header = HEADER.pack(MAGIC, frame.kind, frame.nonce, len(frame.payload))
    if frame.fds:
        socket.send_fds(sock, [header], list(frame.fds))
    else:
        sock.sendall(header)
    sock.sendall(frame.payload)


def receive_frame(
    sock: socket.socket,
    *,
    max_bytes: int = MAX_PAYLOAD_BYTES,
    max_fds: int = 0,
    deadline_s: float | None = None,
) -> Frame:
    """Read one frame.

    `deadline_s` is a value of `time.monotonic()` after which `TimeoutError` is raised, even if bytes still arrive.
    Raises `EOFError` when the other side has closed, and `ProtocolError` for bytes that are not a frame or exceed
    `max_bytes`. The kernel drops file descriptors beyond `max_fds`.
    """
    header, fds = _receive_header(sock, max_fds, deadline_s)
    magic, kind, nonce, length = HEADER.unpack(header)
    if magic != MAGIC:
        raise ProtocolError("bytes that are no message")
    if kind not in set(FrameKind):
        raise ProtocolError(f"a message of unknown kind {kind}")
    if length > max_bytes:
        raise ProtocolError(f"a message of {length:,} bytes, where at most {max_bytes:,} are accepted")
    payload = bytearray(length)
    _receive_into(sock, memoryview(payload), deadline_s)
    return Frame(FrameKind(kind), nonce, payload, fds)


def _receive_header(sock: socket.socket, max_fds: int, deadline_s: float | None) -> tuple[bytes, tuple[int, ...]]:
    _arm(sock, deadline_s)
    fds: tuple[int, ...] = ()
    if max_fds:
        first, received, _flags, _address = socket.recv_fds(sock, HEADER.size, max_fds)
        fds = tuple(received)
    else:
        first = sock.recv(HEADER.size)
    if not first:
        raise EOFError("the other side closed the channel")
    rest = bytearray(HEADER.size - len(first))
    _receive_into(sock, memoryview(rest), deadline_s)
    return first + bytes(rest), fds


def _receive_into(sock: socket.socket, buffer: memoryview, deadline_s: float | None) -> None:
    while len(buffer):
        _arm(sock, deadline_s)
        count = sock.recv_into(buffer)
        if not count:
            raise EOFError("the other side closed the channel in the middle of a message")
        buffer = buffer[count:]


def _arm(sock: socket.socket, deadline_s: float | None) -> None:
    if deadline_s is None:
        return
    left_s = deadline_s - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("no message within the time allowed")
    sock.settimeout(left_s)
