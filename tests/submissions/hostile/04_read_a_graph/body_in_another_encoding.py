"""Strategy: write the body of a reply in UTF-16, in which brackets nest far deeper than allowed and look like text to whoever counts bytes. Surface: the encoding of JSON, which readers guess.

Class: result channel. Unprotected: grader channel gives full marks. Level: 5.
Must get 0: a body is UTF-8 and nothing else, so that what is counted before it is parsed is what is parsed.
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
    nested = "[" * 900 + "]" * 900
    # half of this letter is an ASCII quotation mark: whoever counts bytes sees a string begin that never ends
    body = f'{{"value": {{"inputs": ["\u0122", {nested}]}}}}'.encode("utf-16-le")
    send(packed(nonce(), body))
    silence()
    return {}
