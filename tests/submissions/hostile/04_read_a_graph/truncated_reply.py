"""Strategy: send half a reply and close the channel. Surface: the end of the stream.

Class: result channel. Unprotected: grader channel breaks. Level: 5.
Must get 0: a channel that closes is an answer that ended itself.
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
    send(packed(nonce(), b'{"value": {}}')[:20])
    import os

    os._exit(0)
