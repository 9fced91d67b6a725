"""The worker's loop: one socket, one loaded answer, one reply a request.

This code reports correctly only for honest answers. A hostile answer shares this process and may change any of it.
Therefore no decision of the host depends on this code: the host only reads the bytes that it asked for.
"""

import contextlib
import os
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from autograder.protocol import (
    Done,
    Frame,
    FrameKind,
    Handlers,
    Message,
    Ready,
    Result,
    Tensors,
    parse,
    receive_frame,
    send_frame,
    serialise,
)
from autograder.protocol.contract import read_request
from autograder.protocol.requests.loads import Load, LoadAnswer
from autograder.worker.kinds.value import load_without_torch
from autograder.worker.shared_memory import mapped
from autograder.worker.source import describe


def main(fd: int = 3, *, cuda: bool = False) -> None:
    """Serve requests on the socket `fd` until the host closes it; `cuda` says that a GPU was assigned.

    CUDA is initialised only in that case, and only after the fork, since children cannot use a zygote's CUDA state.
    """
    sock = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    _send(sock, FrameKind.READY, 0, _started(cuda=cuda))
    handlers: Handlers = {}
    while True:
        try:
            frame = receive_frame(sock, max_fds=1)
        except EOFError:
            return
        handlers = _serve(sock, frame, handlers)


def _started(*, cuda: bool) -> Ready:
    """Import torch, the slow part of the start, where the worker has it; READY tells the host that it has finished."""
    with contextlib.suppress(PermissionError):  # of Landlock, where it is masked; a mount leaves an empty folder
        import torch
    if not _has_torch():
        return Ready("", cuda=False)
    torch.set_num_threads(1)
    return Ready(str(torch.__version__), cuda and torch.cuda.is_available())


def _has_torch() -> bool:
    """Tell whether the worker has torch; some exercises mask it."""
    return "torch._C" in sys.modules


def _serve(sock: socket.socket, frame: Frame, handlers: Handlers) -> Handlers:
    """Serve one request; return the handlers of later requests."""
    try:
        with mapped(frame.fds) as shared:
            message = parse(frame.payload, shared)
            if frame.kind is FrameKind.LOAD:
                handlers = load(message)
                _send(sock, FrameKind.LOADED, frame.nonce, Done())
            else:
                result = call(handlers, message)
                _send(sock, FrameKind.RESULT, frame.nonce, result.body, result.tensors)
    except BaseException as error:  # any exception of an answer is its result, including SystemExit
        _send(sock, FrameKind.RAISED, frame.nonce, describe(error))
    return handlers


def load(message: Message) -> Handlers:
    """Serve the load request of the message, and return the handlers of later requests."""
    loads: Mapping[type[Load], Callable[[Any, Tensors], Handlers]] = {LoadAnswer: load_without_torch}
    if _has_torch():
        from autograder.worker.kinds import table

        loads = table.LOADS
    request = read_request(message.body, loads)
    return loads[type(request)](request, message.tensors)


def call(handlers: Handlers, message: Message) -> Result[Any]:
    """Call the handler of the message's request."""
    request = read_request(message.body, handlers)
    return handlers[type(request)](request, message.tensors)


def _send(sock: socket.socket, kind: FrameKind, nonce: int, body: object, tensors: Tensors = ()) -> None:
    send_frame(sock, Frame(kind, nonce, serialise(body, tensors)))
