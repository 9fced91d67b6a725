"""The only code that host and worker share: frames, messages and what they say, standard library only.

A message is a frame (kind, nonce, length) around a body (JSON) and raw tensors. What a body may hold is a dataclass of
`requests`, read by `decoder`. Nothing here evaluates, imports or unpickles.
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
