"""Fork workers from a process that has imported torch; a fork takes a twentieth of the time of a cold start.

The zygote never reads data of a student: each child reads its orders and the answer from its own descriptors. The
zygote runs no torch operation, does not query CUDA and does not set the number of threads. These would create threads
or state that a fork loses. It holds no nonce, seed or orders, so one job cannot learn those of another.
"""

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
from pathlib import Path

from autograder.worker.confinement import kernel
from autograder.worker.zygote.keeper import Job, keep

READY, KEPT, CONNECT = b"ready", b"kept", b"connect"
DESCRIPTORS = 4
"""Descriptors of one job: channel, output, orders, lifeline."""
IDLE_S = 0.05
"""Seconds without a request after which the zygote collapses its memory into large pages."""
DONE = object()
PRELOADS = {
    b"graphs": (
        "torch._dynamo",
        "torch._functorch.aot_autograd",
        # imported by the first trace of Dynamo and the first export
        "torch._dynamo.repro.after_dynamo",
        "torch._export.passes.lift_constants_pass",
        "torch.distributed.tensor.experimental._attention",
    ),
    # sympy imports the second when it first simplifies an index
    b"lowering": ("autograder.worker.inductor_ready", "sympy.physics.units"),
    b"lightning": ("lightning", "tensorboard.backend.event_processing.event_accumulator"),
}
"""Further modules for some workers that are slow to import; none are of course_lib, since parts of it may be masked."""
LARGE_PAGE_BYTES = 2 << 20  # of x86-64, and of arm64 with ordinary pages of 4 KiB
STEP_BYTES = 8 * LARGE_PAGE_BYTES
"""The number of bytes that one step collapses; requests are served between steps."""


def serve(fd: int, *, preload: bool) -> None:
    """Fork a worker for every message on the socket `fd`, until the host closes it and the last job has ended.

    The reply to a job is `KEPT` with a pidfd of the worker's keeper, or an error message. A key of `PRELOADS` is not a
    job: the reply is `READY` after its modules are imported. `CONNECT` carries the socket of a process that the host
    has forked. From then on, messages may come on any socket, until all are closed.
    """
    connections = [socket.socket(fileno=fd)]
    gc.disable()  # during imports, since imported objects are never freed
    if preload:
        import torch
        import torch.fx.experimental.symbolic_shapes  # noqa: F401 - `autograd.grad` imports it, and sympy with it

        from autograder.worker import main, source  # noqa: F401

        # Every worker imports these; they import nothing but torch and the protocol.
        from autograder.worker.kinds import table  # noqa: F401
    _send_ready(connections[0])
    pages = collapse_pages()
    while request := _next_request(connections, pages):
        connection, message, descriptors = request
        if message == CONNECT:
            connections.append(socket.socket(fileno=descriptors[0]))
            with suppress(OSError):  # this host may have died; other hosts continue
                connections[-1].send(READY)
        elif message in PRELOADS:
            gc.disable()
            for name in PRELOADS[message]:
                with suppress(ImportError):  # of what is masked
                    importlib.import_module(name)
            _send_ready(connection)
            pages = collapse_pages()
        else:
            _fork(connections, connection, descriptors)
            _reap_children()
    with suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _send_ready(connection: socket.socket) -> None:
    """Tell the host on `connection` that the imports are done; exit if they started threads, which a fork loses."""
    threads = len(os.listdir("/proc/self/task"))  # noqa: PTH208 - names are enough
    if threads > 1:
        sys.exit(f"importing torch started {threads - 1} threads, which a fork would lose")
    leave_torch_loaded()
    sys.path_importer_cache.clear()  # each worker clears it, too, to see its own view of the course
    inspect.getmodule(sys._getframe())  # fills a cache with every module's file, which custom operators look up
    gc.collect()
    gc.freeze()
    gc.enable()
    with suppress(OSError):
        connection.send(READY)


def leave_torch_loaded() -> None:
    """Prevent forks of this process from unregistering torch's operators one by one at exit."""
    for undo in weakref.finalize._registry:  # type: ignore[attr-defined]
        undo.atexit = False


def _next_request(
    connections: list[socket.socket], pages: Iterator[None]
) -> tuple[socket.socket, bytes, list[int]] | None:
    """Return the next message, its socket and its descriptors; collapse memory while no request waits.

    A socket that its host has closed is dropped; return None when none is left.
    """
    while connections:
        while not (ready := select.select(connections, [], [], IDLE_S)[0]):
            if next(pages, DONE) is DONE:
                ready = select.select(connections, [], [])[0]
                break
        connection = ready[0]
        with suppress(OSError):  # a host may die without reading its answer
            message, descriptors, _, _ = socket.recv_fds(connection, 64, DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
            if message:
                return connection, message, descriptors
        connections.remove(connection)
        connection.close()
    return None


def _fork(connections: list[socket.socket], connection: socket.socket, descriptors: list[int]) -> None:
    """Fork the keeper of one job, and reply to the host on `connection`."""
    try:
        child = os.fork()
        if child == 0:
            for each in connections:
                each.close()
            keep(Job(*descriptors))
        pidfd = os.pidfd_open(child)
        socket.send_fds(connection, [KEPT], [pidfd])
        os.close(pidfd)
    except OSError as error:
        with suppress(OSError):
            connection.send(f"the zygote could not fork ({error.strerror})".encode())
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _reap_children() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def collapse_pages() -> Iterator[None]:
    """Collapse the private memory of this process into large pages; each item of the iterator is one step.

    The page tables, which every fork copies, become far smaller. A write after a fork splits a large page, and only the
    written ordinary pages are copied.
    """
    for begin, end in private_ranges(Path("/proc/self/maps").read_text()):
        for start in range(begin, end, STEP_BYTES):
            with suppress(OSError):  # fails on an older kernel, or without free large pages; the ordinary pages stay
                kernel.madvise(start, min(end, start + STEP_BYTES) - start, kernel.MADV_COLLAPSE)
            yield


def private_ranges(maps: str) -> Iterator[tuple[int, int]]:
    """Yield first and last address of the private, writable memory in `maps`, a text like /proc/self/maps.

    File mappings are left out, and only whole large pages count.
    """
    for line in maps.splitlines():
        addresses, access, _, _, _, *name = line.split(maxsplit=5)
        if access == "rw-p" and name in ([], ["[heap]"]):
            begin, end = (int(address, 16) for address in addresses.split("-"))
            begin = -(-begin // LARGE_PAGE_BYTES) * LARGE_PAGE_BYTES
            end = end // LARGE_PAGE_BYTES * LARGE_PAGE_BYTES
            if begin < end:
                yield begin, end
