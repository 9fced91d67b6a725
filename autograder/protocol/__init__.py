"""The only code that host and worker share: frames and messages over one socket, standard library only.

A message is a frame (kind, nonce, length) around a body (JSON) and raw tensors. Nothing here evaluates, imports or
unpickles.
"""

from autograder.protocol.frames import Frame, Kind, ProtocolError, receive_frame, send_frame
from autograder.protocol.messages import Message, parse, serialise
from autograder.protocol.tensors import DTYPES, RawTensor

__all__ = [
    "DTYPES",
    "Frame",
    "Kind",
    "Message",
    "ProtocolError",
    "RawTensor",
    "parse",
    "receive_frame",
    "send_frame",
    "serialise",
]
