"""The host's end of the socket: one request, one reply, nothing in between.

Every fault of a worker on the channel is raised here as one of three exceptions, so the judge handles only these.
"""

import secrets
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from autograder.protocol import Frame, FrameKind, Message, ProtocolError, parse, receive_frame, send_frame

MAX_REPLY_BYTES = 256 << 20
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid; see unix(7)
Seen = TypeVar("Seen")


class MalformedAnswerError(Exception):
    """The worker sent bytes too early, twice or in an unknown form; no honest answer does this."""

    def __init__(self, message: str = "The worker sent a reply of another form.") -> None:
        super().__init__(message)


class WorkerGoneError(Exception):
    """The worker closed the channel: its process ended, or was ended."""


class AnswerRaisedError(Exception):
    """The answer raised an exception. `facts` has the form of `Raised`; fields of another form are ignored."""

    def __init__(self, facts: Mapping[str, object]) -> None:
        super().__init__(str(facts.get("message", "")))
        self.type = _text(facts, "type", 100)
        self.message = _text(facts, "message", 1000)
        self.part = _text(facts, "part", 100)
        self.text = _text(facts, "text", 200)
        line = facts.get("line")
        self.line = line if type(line) is int and 0 <= line < 1_000_000 else 0
        self.said_to_student = facts.get("said_to_student") is True  # used only to word messages, like all fields here


class Channel:
    """Send requests to one worker, each under a deadline (a value of `time.monotonic()`)."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self.worker_pid = 0  # the process id that the host sees, given by the kernel; 0 if unknown
        if hasattr(socket, "SO_PASSCRED"):  # without it, as on macOS, the id stays unknown
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def wait_ready(self, deadline_s: float) -> Message:
        """Return the worker's first message: it has imported torch and waits."""
        return self._receive(0, {FrameKind.READY}, deadline_s)

    def request(self, kind: FrameKind, payload: bytes, fds: tuple[int, ...] = (), *, deadline_s: float) -> Message:
        """Send one request and return its reply.

        Raises `AnswerRaisedError`, `MalformedAnswerError`, `WorkerGoneError`, or `TimeoutError`.
        """
        self._prepare(deadline_s)
        return self._exchange(Frame(kind, secrets.randbits(64), payload, fds), deadline_s)

    def timed_call(
        self,
        payload: bytes,
        fds: tuple[int, ...],
        *,
        deadline_s: float,
        deliver: Callable[[], None],
        look: Callable[[], Seen],
    ) -> tuple[Message, Seen, int]:
        """Send one call; return its reply, the result of `look`, and the time in nanoseconds on the host's clock.

        The time includes `deliver`, the signal, the worker's work, its reply and `look`. Raises the same exceptions as
        `request`.
        """
        self._prepare(deadline_s)
        frame = Frame(FrameKind.CALL, secrets.randbits(64), payload, fds)
        start_ns = time.perf_counter_ns()
        deliver()
        reply = self._exchange(frame, deadline_s)
        seen = look()
        return reply, seen, time.perf_counter_ns() - start_ns

    def expect_silence(self) -> None:
        """Raise `MalformedAnswerError` if unread bytes wait on the socket, since no request is open."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        self._socket.settimeout(0)  # an out-of-band byte counts as readable, but waiting for it never ends
        try:
            unasked = bool(readable) and bool(self._socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            unasked = True
        except ConnectionResetError:
            raise WorkerGoneError from None
        if unasked:
            raise MalformedAnswerError("The worker sent something before it was asked, or answered twice.")

    def _prepare(self, deadline_s: float) -> None:
        self.expect_silence()
        self._socket.settimeout(max(deadline_s - time.monotonic(), 0.001))

    def _exchange(self, frame: Frame, deadline_s: float) -> Message:
        try:
            send_frame(self._socket, frame)
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerGoneError from None
        expected = FrameKind.LOADED if frame.kind is FrameKind.LOAD else FrameKind.RESULT
        return self._receive(frame.nonce, {expected, FrameKind.RAISED}, deadline_s)

    def _learn_pid(self, deadline_s: float) -> None:
        """Read the sender's process id from the next message without consuming it; if it has none, try the next."""
        self._socket.settimeout(max(deadline_s - time.monotonic(), 0.001))
        _, ancillary, _, _ = self._socket.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size), socket.MSG_PEEK)
        for level, kind, data in ancillary:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_CREDENTIALS):
                self.worker_pid = CREDENTIALS.unpack(data)[0]

    def _receive(self, nonce: int, kinds: set[FrameKind], deadline_s: float) -> Message:
        try:
            if not self.worker_pid:
                self._learn_pid(deadline_s)
            frame = receive_frame(self._socket, max_bytes=MAX_REPLY_BYTES, deadline_s=deadline_s)
            if frame.nonce != nonce or frame.kind not in kinds:
                raise ProtocolError("an answer to another question")
            message = parse(frame.payload)
        except (EOFError, ConnectionResetError):
            raise WorkerGoneError from None
        except ProtocolError as error:
            raise MalformedAnswerError(f"The worker sent {error}.") from None
        if frame.kind is FrameKind.RAISED:
            raise AnswerRaisedError(message.body)
        return message


def _text(facts: Mapping[str, object], key: str, limit: int) -> str:
    value = facts.get(key)
    # JSON may contain half a surrogate pair, which cannot be encoded
    return value[:limit].encode("utf-8", "replace").decode() if type(value) is str else ""
