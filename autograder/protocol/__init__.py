"""The only code that host and worker share: frames, messages and requests. It uses the standard library only.

A message is a frame (kind, nonce, length) around a body (JSON) and raw tensors. The dataclasses in `requests` define
the possible bodies, and `decoder` reads them. This code never evaluates, imports or unpickles received data.
"""

from autograder.protocol.contract import Done, GraphData, Handlers, Json, Raised, Ready, Request, Result, Tensors
from autograder.protocol.frames import Frame, FrameKind, ProtocolError, receive_frame, send_frame
from autograder.protocol.messages import DTYPES, Message, RawTensor, parse, serialise

__all__ = [
    "DTYPES",
    "Done",
    "Frame",
    "FrameKind",
    "GraphData",
    "Handlers",
    "Json",
    "Message",
    "ProtocolError",
    "Raised",
    "RawTensor",
    "Ready",
    "Request",
    "Result",
    "Tensors",
    "parse",
    "receive_frame",
    "send_frame",
    "serialise",
]
