"""One thread at a time computes on the host; while it waits for a worker, another one computes.

A class is graded by several threads, and much of what a check does changes the whole process for a moment: torch.fx
traces by replacing `nn.Module.__call__`, compilers keep their state in globals, and catching warnings replaces the
list of filters. A thread that called a module in that moment would find itself in another one's trace. Python lets one
thread compute at a time anyway, and the workers, where the answers run, are processes of their own.

The thread that holds the lock computes with one thread of torch's, too: on tensors as small as those of checks, handing
work to a second one and waiting for it saves nothing, least of all while workers need the cores.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ComputeLock:
    """Held by the thread that computes, and released while it waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until no other thread computes. A thread that holds the lock already keeps it."""
        if self._is_mine():
            yield
            return
        with self._lock:
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
        """Let others compute until the block ends, then take the lock again; do nothing for a thread without it."""
        if not self._is_mine():
            yield
            return
        self._holder = None
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()
            self._holder = threading.get_ident()

    def _is_mine(self) -> bool:
        return self._holder == threading.get_ident()


compute_lock = ComputeLock()
"""The lock of this process."""
