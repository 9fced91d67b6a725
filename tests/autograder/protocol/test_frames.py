"""Frames arrive whole, in time and in bounds, or not at all."""

import os
import socket
import struct
import threading
import time
from pathlib import Path

import pytest

from autograder.protocol import Frame, FrameKind, ProtocolError, receive_frame, send_frame
from autograder.protocol.frames import HEADER, MAGIC


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_a_frame_arrives_as_it_was_sent(pair):
    ours, theirs = pair
    send_frame(theirs, Frame(FrameKind.RESULT, 2**64 - 1, b"payload"))
    frame = receive_frame(ours)
    assert (frame.kind, frame.nonce, bytes(frame.payload), frame.fds) == (FrameKind.RESULT, 2**64 - 1, b"payload", ())


def test_a_descriptor_arrives_only_where_there_is_room_for_it(pair):
    ours, theirs = pair
    memory = os.memfd_create("inputs")
    os.write(memory, b"shared")
    for max_fds, expected in ((1, 1), (0, 0)):
        before = set(Path("/proc/self/fd").iterdir())
        send_frame(theirs, Frame(FrameKind.CALL, 1, b"", (memory,)))
        frame = receive_frame(ours, max_fds=max_fds)
        assert len(frame.fds) == expected
        for fd in frame.fds:
            assert os.pread(fd, 6, 0) == b"shared"
            os.close(fd)
        assert set(Path("/proc/self/fd").iterdir()) == before
    os.close(memory)


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        (HEADER.pack(b"HTTP", 1, 0, 0), "no message"),
        (HEADER.pack(MAGIC, 99, 0, 0), "unknown kind 99"),
        (HEADER.pack(MAGIC, 5, 0, 2**63), "at most"),
    ],
)
def test_a_header_of_another_form_is_refused(pair, header, sentence):
    ours, theirs = pair
    theirs.sendall(header)
    with pytest.raises(ProtocolError, match=sentence):
        receive_frame(ours, max_bytes=1000)


def test_a_peer_that_closes_is_told_from_one_that_is_slow(pair):
    ours, theirs = pair
    with pytest.raises(TimeoutError):
        receive_frame(ours, deadline_s=time.monotonic() + 0.05)
    theirs.sendall(MAGIC)
    theirs.close()
    with pytest.raises(EOFError):
        receive_frame(ours, deadline_s=time.monotonic() + 5)


def test_bytes_that_trickle_in_do_not_extend_the_deadline(pair):
    ours, theirs = pair
    theirs.sendall(HEADER.pack(MAGIC, FrameKind.RESULT, 0, 1 << 20))
    stop = threading.Event()

    def trickle():
        while not stop.wait(0.02):
            theirs.send(b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    started_s = time.monotonic()
    try:
        with pytest.raises(TimeoutError):
            receive_frame(ours, deadline_s=started_s + 0.2)
    finally:
        stop.set()
        thread.join()
    assert time.monotonic() - started_s < 2


def test_the_header_has_the_documented_layout():
    assert HEADER.pack(b"FUS1", 4, 7, 9) == b"FUS1\x04\0\0\0" + struct.pack("<QQ", 7, 9)
