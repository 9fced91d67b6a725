"""Call a function on a student's text in a process that the kernel ends when it takes too much time or memory.

The process is forked, so it starts in milliseconds and finds all modules loaded. It closes every file but its own
pipe: the journal, the gradebook and channels to workers stay the parent's alone. It serves many calls, and a new one
takes its place after a limit. Time is processor time: a busy machine does not change what a page shows.
"""

import gc
import json
import os
import resource
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection, Pipe
from pathlib import Path
from typing import Any

IDLE_S = 30.0  # a process without calls ends itself, also if its parent was killed
WALL_FACTOR = 30  # of the limit of processor time: after this even a process that sleeps is ended
MORE_MEMORY_BYTES = 1 << 30
MOST_DESCRIPTORS = 1 << 16


class LimitedProcess:
    """Call `function`, from keywords of plain data to text, within limits.

    >>> shout = LimitedProcess(lambda text: text.upper())
    >>> shout.call({"text": "ada"}, cpu_s=2)[0]
    'ADA'
    """

    def __init__(self, function: Callable[..., str]) -> None:
        self._function = function
        self._connection: Connection | None = None
        self._process, self._parent = 0, 0

    def call(self, arguments: Mapping[str, Any], *, cpu_s: float) -> tuple[str | None, float]:
        """Return the result, or None if there is none within `cpu_s`, and the processor seconds that it took."""
        request = json.dumps([arguments, cpu_s]).encode()
        for _ in range(2):  # the process may have ended itself since the last call
            try:
                connection = self._opened()
                connection.send_bytes(request)
            except OSError:
                self.close()
                continue
            try:
                if connection.poll(WALL_FACTOR * (cpu_s + 1)):
                    result, used_s = json.loads(connection.recv_bytes())
                    return result, used_s
            except (EOFError, OSError):
                pass
            self.close()
            return None, cpu_s
        return None, 0.0

    def close(self) -> None:
        """End the process, unless it belongs to a parent of this one."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
            if self._parent == os.getpid():
                with suppress(ProcessLookupError, ChildProcessError):
                    os.kill(self._process, signal.SIGKILL)
                    os.waitpid(self._process, 0)

    def _opened(self) -> Connection:
        if self._connection is not None and self._parent == os.getpid():
            return self._connection
        self.close()
        ours, theirs = Pipe()
        self._parent, self._process = os.getpid(), os.fork()
        if self._process == 0:
            try:
                _serve(theirs, self._function)
            finally:
                os._exit(0)
        theirs.close()
        self._connection = ours
        return ours


def _serve(connection: Connection, function: Callable[..., str]) -> None:
    """Answer each request, under a limit of its own."""
    gc.freeze()  # what was loaded before stays shared with the parent
    os.closerange(3, connection.fileno())
    os.closerange(connection.fileno() + 1, MOST_DESCRIPTORS)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPROF):
        signal.signal(number, signal.SIG_DFL)
    used_bytes = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    wanted = {resource.RLIMIT_AS: used_bytes + MORE_MEMORY_BYTES, resource.RLIMIT_CORE: 0}
    wanted[resource.RLIMIT_CPU] = (
        resource.RLIM_INFINITY
    )  # the parent's own limit is for what it does, not for all calls
    for limit, soft in wanted.items():
        hard = resource.getrlimit(limit)[1]
        above = hard != resource.RLIM_INFINITY and not 0 <= soft <= hard
        resource.setrlimit(limit, (hard if above else soft, hard))
    with suppress(EOFError, OSError):
        while connection.poll(IDLE_S):
            arguments, cpu_s = json.loads(connection.recv_bytes())
            started_s = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, cpu_s)  # its signal ends the process
            result = None
            with suppress(Exception):  # whatever the function cannot handle, the caller shows in another way
                result = function(**arguments)
            signal.setitimer(signal.ITIMER_PROF, 0)
            connection.send_bytes(json.dumps([result, time.process_time() - started_s]).encode())
