"""Strategy: answer with numbers that no float holds, and integers of four thousand digits. Surface: 1e999, -0.0, NaN, integers without bound, in JSON.

Class: result channel. Unprotected: grader channel gives full marks. Level: 5.
Must get 0: values are compared by type and content with the host's own; a number too long to read is a malformed answer.
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
    digits = b"9" * 4_000
    send(packed(nonce(), b'{"value": {"inputs": NaN, "leaf_modules": -0, "two_users": 1e999, "dead": -Infinity, "longest_path": ' + digits + b"}}"))
    silence()
    return {}
