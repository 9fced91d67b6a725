"""Strategy: send a tensor whose bytes lie outside the message, another of negative size, a third of too many dimensions. Surface: tensor records.

Class: result channel. Unprotected: grader channel breaks. Level: 5.
Must get 0: sizes, strides and places of tensors are checked against the bytes that came.
"""

import json
import socket
import struct
import sys
import time


def nonce():
    """The number of the request, from a variable of whoever called."""
    frame = sys._getframe(1)
    while frame is not None:
        if hasattr(frame.f_locals.get("frame"), "nonce"):
            return frame.f_locals["frame"].nonce
        frame = frame.f_back
    return 0


def silence():
    """Keep the worker from sending a reply of its own."""
    try:
        import autograder.worker.main as worker
    except ImportError:
        return
    worker.send_frame = lambda *frame: None


def packed(number, body, tensors=struct.pack("<I", 0), kind=5, length=None):
    payload = struct.pack("<I", len(body)) + body + tensors
    return struct.pack("<4sB3xQQ", b"FUS1", kind, number, len(payload) if length is None else length) + payload


def send(data):
    with socket.socket(fileno=socket.dup(3)) as channel:
        channel.setblocking(True)
        try:
            channel.sendall(data)
        except OSError:
            pass


def read_graph(rows):
    record = struct.pack("<BBB5xQQ", 8, 0, 2, 1 << 60, 1 << 40) + struct.pack("<4q", -3, 1 << 62, 1, 1)
    send(packed(nonce(), b'{"value": {}}', struct.pack("<I", 1) + record))
    silence()
    return {}
