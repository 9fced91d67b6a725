"""Strategy: raise, and describe the exception in facts of other types: objects, numbers beyond all size, lists for text. Surface: the reply that says what was raised.

Class: result channel. Unprotected: grader channel breaks. Level: 5.
Must get 0: facts of another type than expected are left out, and a message never decides anything.
"""

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
    facts = b'{"type": {"__class__": "SystemExit"}, "message": ["NotImplementedError"], "line": 1e308, "part": true, "text": {}}'
    send(packed(nonce(), facts, kind=6))
    silence()
    return {}
