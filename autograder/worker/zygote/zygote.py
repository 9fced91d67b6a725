"""Forks workers from a process that has imported torch, and so starts one in a twentieth of the time.

The zygote never reads a student's byte: each child reads its orders from the descriptor that came with the job, and
the answer from its own channel. It has run no operation, asked nothing about CUDA and set no number of threads, since
any of these makes threads or state that does not survive a fork. It holds nothing that one job could tell the next:
no nonce, no seed, no orders.
"""

from __future__ import annotations

import gc
import importlib
import inspect
import os
import select
import socket
import sys
import weakref
from collections.abc import Iterator
from contextlib import suppress

from autograder.worker.zygote import large_pages
from autograder.worker.zygote.keeper import Job, keep

READY, KEPT, LINE = b"ready", b"kept", b"line"
DESCRIPTORS = 4
"""Of one job: channel, output, orders, leash."""
IDLE_S = 0.05
"""After so long without a request it uses the time for itself."""
GATHERED = object()
MORE = {
    b"graphs": (
        "torch._dynamo",
        "torch._functorch.aot_autograd",
        # what the first trace of Dynamo and the first export import
        "torch._dynamo.repro.after_dynamo",
        "torch._export.passes.lift_constants_pass",
        "torch.distributed.tensor.experimental._attention",
    ),
    # the second is what sympy imports when it first simplifies an index
    b"lowering": ("autograder.worker.inductor_ready", "sympy.physics.units"),
}
"""What some workers need besides, and what is slow to import; nothing of it is the library's, of which a worker may
have to lack parts."""


def serve(fd: int, *, preload: bool) -> None:
    """Fork a worker for every message on the socket ``fd``, until the host closes it and the last job has ended.

    The answer to a message is ``KEPT`` with a pidfd of the process that keeps the job's worker, or a sentence. A
    key of ``MORE`` brings no job; the answer is ``READY``, once its modules are imported, too. ``LINE`` brings another
    socket, of a process that the host has forked: from then on messages may come on either, until all are closed.
    """
    lines = [socket.socket(fileno=fd)]
    gc.disable()  # while it imports: all of that stays
    if preload:
        import torch
        import torch.fx.experimental.symbolic_shapes  # noqa: F401 - `autograd.grad` imports it, and sympy with it

        from autograder.worker import main, source  # noqa: F401

        # What the worker imports in any case; none of it does more than import torch and the protocol.
        from autograder.worker.kinds import table  # noqa: F401
    _say_ready(lines[0])
    gathering = large_pages.gather()
    while request := _next_request(lines, gathering):
        line, message, descriptors = request
        if message == LINE:
            lines.append(socket.socket(fileno=descriptors[0]))
            with suppress(OSError):  # this host may have died, others have not
                lines[-1].send(READY)
        elif message in MORE:
            gc.disable()
            for name in MORE[message]:
                importlib.import_module(name)
            _say_ready(line)
            gathering = large_pages.gather()
        else:
            _fork(lines, line, descriptors)
            _bury_the_dead()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _say_ready(line: socket.socket) -> None:
    """Tell the host on ``line`` that everything is imported, unless a fork would not survive it."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are enough
    if threads > 1:
        sys.exit(f"importing torch started {threads - 1} threads, which a fork would lose")
    leave_torch_loaded()
    sys.path_importer_cache.clear()  # which each worker does, to find what is masked for it
    inspect.getmodule(sys._getframe())  # looks every module's file up, which custom operators ask for, and remembers
    gc.collect()
    gc.freeze()
    gc.enable()
    with suppress(OSError):
        line.send(READY)


def leave_torch_loaded() -> None:
    """Have no fork of this process undo torch's import, operator by operator, before it ends."""
    for undo in weakref.finalize._registry:  # type: ignore[attr-defined]
        undo.atexit = False


def _next_request(
    lines: list[socket.socket], gathering: Iterator[None]
) -> tuple[socket.socket, bytes, list[int]] | None:
    """Gather memory while nobody asks for anything; then a message, where it came from and its descriptors.

    A line that its host has closed is forgotten; None when none is left.
    """
    while lines:
        while not (ready := select.select(lines, [], [], IDLE_S)[0]):
            if next(gathering, GATHERED) is GATHERED:
                ready = select.select(lines, [], [])[0]
                break
        line = ready[0]
        with suppress(OSError):  # a host that died without reading its answer
            message, descriptors, _, _ = socket.recv_fds(line, 64, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
            if message:
                return line, message, descriptors
        lines.remove(line)
        line.close()
    return None


def _fork(lines: list[socket.socket], line: socket.socket, descriptors: list[int]) -> None:
    """Fork the keeper of one job, and tell the host that asked on ``line``."""
    try:
        child = os.fork()
        if child == 0:
            for each in lines:
                each.close()
            keep(Job(*descriptors))
        pidfd = os.pidfd_open(child)
        socket.send_fds(line, [KEPT], [pidfd])
        os.close(pidfd)
    except OSError as error:
        with suppress(OSError):
            line.send(f"the zygote could not fork ({error.strerror})".encode())
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _bury_the_dead() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
