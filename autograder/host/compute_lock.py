"""The compute lock: one thread at a time computes on the host, and releases the lock while it waits for a worker.

Several threads grade a class, and many checks change the whole process for a moment. torch.fx traces by replacing
`nn.Module.__call__`, compilers keep their state in globals, and catching warnings replaces the list of filters. A
second thread that called a module at that moment would enter the first one's trace. Python lets one thread compute at a
time anyway, and workers, which run the answers, are processes of their own.

The holder also computes with one thread of torch. Tensors in checks are so small that a second thread saves nothing,
and workers need the cores.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch


class ComputeLock:
    """A lock that a thread holds while it computes and releases while it waits."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._holder: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Wait until no other thread computes, then hold the lock; a thread that holds it already continues."""
        if self._is_mine():
            yield
            return
        with self._free:
            self._holder = threading.get_ident()
            usual = torch.get_num_threads()  # each thread has a number of its own
            torch.set_num_threads(1)
            try:
                yield
            finally:
                torch.set_num_threads(usual)
                self._holder = None

    @contextmanager
    def released(self) -> Iterator[None]:
        """Release the lock until the block ends, then wait for it again; do nothing in a thread without it."""
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
"""The lock of this process."""
