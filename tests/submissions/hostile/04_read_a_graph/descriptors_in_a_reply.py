"""Strategy: attach hundreds of open files to replies, until the host has no descriptor left. Surface: SCM_RIGHTS on the channel.

Class: result channel. Unprotected: grader channel gives full marks. Level: 5.
Must get 0: without room for them the kernel drops what comes attached; the host takes no descriptor from a worker.
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
    number = nonce()
    body = b'{"value": {"inputs": 1}}'
    data = packed(number, body)
    silence()
    with socket.socket(fileno=socket.dup(3)) as channel:
        for part in (data[:1], data[1:10], data[10:]):
            try:
                socket.send_fds(channel, [part], [0] * 80)
            except OSError:  # too many are on their way already
                channel.sendall(part)
    return {}
