"""The worker's loop: one socket, one loaded answer, one reply a request.

What is here is written for honest answers: it reports what happened. A hostile answer shares this process and may
change any of it, which is why nothing that the host decides rests on these lines: the host only reads the bytes it
asked for.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from autograder.protocol import Frame, Kind, Message, parse, receive_frame, send_frame, serialise
from autograder.protocol.tensors import RawTensor
from autograder.worker.failures import describe
from autograder.worker.shared_memory import mapped

Reply = tuple[dict[str, Any], list[RawTensor]]
Answer = Callable[[Message], Reply]


def main(fd: int = 3, *, cuda: bool = False) -> None:
    """Serve requests on the socket ``fd`` until the host closes it; ``cuda`` says that a GPU was assigned.

    CUDA is asked for only then, and here, after the fork: what a zygote had begun would be of no use in its children.
    """
    sock = socket.socket(fileno=fd)
    os.set_inheritable(fd, False)
    import torch  # the slow part of starting; READY tells the host that it is over

    torch.set_num_threads(1)
    _send(sock, Kind.READY, 0, {"torch": torch.__version__, "cuda": cuda and torch.cuda.is_available()})
    answer: Answer | None = None
    while True:
        try:
            frame = receive_frame(sock, max_fds=1)
        except EOFError:
            return
        answer = _serve(sock, frame, answer)


def _serve(sock: socket.socket, frame: Frame, answer: Answer | None) -> Answer | None:
    """Answer one request; returns the answer that later requests call."""
    try:
        with mapped(frame.fds) as shared:
            message = parse(frame.payload, shared)
            if frame.kind is Kind.LOAD:
                answer = _load(message)
                _send(sock, Kind.LOADED, frame.nonce, {})
            elif answer is None:
                raise RuntimeError("a call before anything was loaded")
            else:
                body, tensors = answer(message)
                _send(sock, Kind.RESULT, frame.nonce, body, tensors)
    except BaseException as error:  # whatever an answer raises, SystemExit included, is its result
        _send(sock, Kind.RAISED, frame.nonce, describe(error))
    return answer


def _load(message: Message) -> Answer:
    """Choose by ``body["mode"]`` what later calls run: a student's answer, a rebuilt graph, or programs of the host's.

    What a student wrote is run as one module, and its function ``entry_point`` is what `answers` wraps.
    """
    from autograder.worker import event_files, lowering, rebuilt, source
    from autograder.worker.kinds import archive, counterexample
    from autograder.worker.kinds.table import ANSWERS

    mode, body = message.body["mode"], message.body
    if mode == "rebuilt":
        return rebuilt.load(message)
    if mode == "archive program":
        return archive.load(message)
    if mode == "lowered":
        return lowering.load(message)
    if mode == "events":
        return event_files.load(message)
    if mode == "trial":
        return counterexample.trial(vars(source.run(body["parts"])).__getitem__)
    return ANSWERS[mode](source.load(body["parts"], body["entry_point"]))


def _send(
    sock: socket.socket, kind: Kind, nonce: int, body: dict[str, Any], tensors: list[RawTensor] | None = None
) -> None:
    payload = serialise(body, tensors or [])
    send_frame(sock, Frame(kind, nonce, payload))
