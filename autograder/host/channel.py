"""The host's end of the socket: one request, one reply, nothing in between.

What a worker can do wrong on the channel ends here as one of three exceptions, so that the judge sees only outcomes.
"""

from __future__ import annotations

import secrets
import select
import socket
import time
from collections.abc import Sequence
from typing import Any

from autograder.protocol import (
    Frame,
    Kind,
    Message,
    ProtocolError,
    RawTensor,
    parse,
    receive_frame,
    send_frame,
    serialise,
)

MAX_REPLY_BYTES = 256 << 20


class MalformedAnswerError(Exception):
    """The worker sent what no honest answer sends: bytes too early, twice, or in no known form."""


class WorkerGoneError(Exception):
    """The worker closed the channel: its process ended, or was ended."""


class AnswerRaisedError(Exception):
    """The answer raised. ``facts`` is what the worker says about it, checked for form only."""

    def __init__(self, facts: dict[str, Any]) -> None:
        super().__init__(str(facts.get("message", "")))
        self.type = _text(facts, "type", 100)
        self.message = _text(facts, "message", 1000)
        self.part = _text(facts, "part", 100)
        self.text = _text(facts, "text", 200)
        line = facts.get("line")
        self.line = line if type(line) is int and 0 <= line < 1_000_000 else 0


class Channel:
    """Requests to one worker, each under a deadline (a value of ``time.monotonic()``)."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock

    def wait_ready(self, deadline_s: float) -> Message:
        """The worker's first message: it has imported torch and waits."""
        return self._receive(0, {Kind.READY}, deadline_s)

    def request(
        self,
        kind: Kind,
        body: dict[str, Any],
        tensors: Sequence[RawTensor] = (),
        *,
        shared_bytes: Sequence[int] = (),
        fds: tuple[int, ...] = (),
        deadline_s: float,
    ) -> Message:
        """Send one request and return its reply.

        Raises `AnswerRaisedError`, `MalformedAnswerError`, `WorkerGoneError`, or ``TimeoutError``.
        """
        self.expect_silence()
        nonce = secrets.randbits(64)
        payload = serialise(body, tensors, shared_bytes)
        try:
            self._socket.settimeout(max(deadline_s - time.monotonic(), 0.001))
            send_frame(self._socket, Frame(kind, nonce, payload, fds))
        except (BrokenPipeError, ConnectionResetError):
            raise WorkerGoneError from None
        expected = Kind.LOADED if kind is Kind.LOAD else Kind.RESULT
        return self._receive(nonce, {expected, Kind.RAISED}, deadline_s)

    def expect_silence(self) -> None:
        """Raise `MalformedAnswerError` if bytes lie unread: an answer that nobody asked for."""
        readable, _, _ = select.select([self._socket], [], [], 0)
        try:
            unasked = readable and self._socket.recv(1, socket.MSG_PEEK)
        except ConnectionResetError:
            raise WorkerGoneError from None
        if unasked:
            raise MalformedAnswerError("The worker sent something before it was asked, or answered twice.")

    def _receive(self, nonce: int, kinds: set[Kind], deadline_s: float) -> Message:
        try:
            frame = receive_frame(self._socket, max_bytes=MAX_REPLY_BYTES, deadline_s=deadline_s)
            if frame.nonce != nonce or frame.kind not in kinds:
                raise ProtocolError("an answer to another question")
            message = parse(frame.payload)
        except (EOFError, ConnectionResetError):
            raise WorkerGoneError from None
        except ProtocolError as error:
            raise MalformedAnswerError(f"The worker sent {error}.") from None
        if frame.kind is Kind.RAISED:
            raise AnswerRaisedError(message.body)
        return message


def _text(facts: dict[str, Any], key: str, limit: int) -> str:
    value = facts.get(key)
    return value[:limit] if type(value) is str else ""
