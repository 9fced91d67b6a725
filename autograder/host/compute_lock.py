"""One thread at a time computes on the host; while it waits for a worker, the next one has its turn.

A class is graded by several threads, and much of what a check does changes the whole process for a moment: torch.fx
traces by replacing `nn.Module.__call__`, compilers keep their state in globals, and catching warnings replaces the
list of filters. A thread that called a module in that moment would find itself in another one's trace. Python lets one
thread compute at a time anyway, and the workers, where the answers run, are processes of their own.

Whoever has a turn computes with one thread of torch's, too: on tensors as small as those of checks, handing work to a
second one and waiting for it saves nothing, least of all while workers need the cores.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ComputeLock:
    """Resources by whoever computes, and given up while waiting."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until no other thread computes. A thread that has its turn already keeps it."""
        if self._is_mine():
            yield
            return
        with self._free:
            self._holder = threading.get_ident()
            usual = torch.get_num_threads()  # of this thread: each has its own number
            torch.set_num_threads(1)
            try:
                yield
            finally:
                torch.set_num_threads(usual)
                self._holder = None

    @contextmanager
    def released(self) -> Iterator[None]:
        """Let others compute until the block ends, then wait for a turn again; nothing for a thread that has none."""
        if not self._is_mine():
            yield
            return
        self._holder = None
        self._free.release()
        try:
            yield
        finally:
            self._free.acquire()
            self._holder = threading.get_ident()

    def _is_mine(self) -> bool:
        return self._holder == threading.get_ident()


compute_lock = ComputeLock()
"""That of this process."""
