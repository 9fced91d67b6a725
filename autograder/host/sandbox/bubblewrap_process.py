"""One worker in its own bubblewrap: start it, limit it, kill it and release its resources."""

import contextlib
import json
import os
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence

from autograder.host.sandbox.descriptors import in_memory, readable
from autograder.host.sandbox.process import Enclosure, StartError
from autograder.host.sandbox.resource_limits import MIB
from autograder.host.sandbox.resources import Resources, process_memory

_START_S, _END_S = 20.0, 10.0


class BubblewrapProcess(Enclosure):
    """One worker in bubblewrap; killing the first process of its process namespace kills all the others."""

    def __init__(
        self,
        bwrap: str,
        options: Sequence[str],
        rules: bytes,
        command: Callable[[socket.socket], list[str]],
        resources: Resources,
        memory_bytes: int,
    ) -> None:
        self._bwrap, self._options, self._rules, self._command = bwrap, options, rules, command
        self._resources, self._group, self._memory_bytes = resources, resources.group, memory_bytes
        self._first_pid = 0
        self._first: int | None = None  # a pidfd: unlike a process id, it is never reused
        # A watchdog has to look more often than a reader of the kernel's counters.
        self.tick_s = 0.1 if self._group else 0.025

    def spawn(self, channel: socket.socket, output: int) -> subprocess.Popen[bytes]:
        """Start bubblewrap, limit its first process, and let it continue only then."""
        info_read, info_write = os.pipe()
        block_read, block_write = os.pipe()
        rules = in_memory(self._rules)
        reports = ("--seccomp", str(rules), "--info-fd", str(info_write), "--block-fd", str(block_read))
        options = [*reports, *self._options]
        # Passed by descriptor, so that the worker cannot read the host's paths in /proc/1/cmdline.
        arguments = in_memory(b"".join(os.fsencode(option) + b"\0" for option in options))
        try:
            process = subprocess.Popen(
                [self._bwrap, "--args", str(arguments), "--", *self._command(channel)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={},
                cwd="/",
                pass_fds=(channel.fileno(), info_write, block_read, rules, arguments),
            )
        finally:
            for descriptor in (info_write, block_read, rules, arguments):
                os.close(descriptor)
        try:
            self._hold(_child_pid(info_read))
            os.write(block_write, b"1")
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            os.close(info_read)
            os.close(block_write)
        return process

    def explain(self, printed: str) -> str:
        """Name the kernel setting that refuses namespaces, and the command that allows them."""
        if "namespace" not in printed and "uid map" not in printed:
            return f"bubblewrap could not build the sandbox ({printed})."
        return (
            f"This machine does not allow new namespaces ({printed}). Its administrator allows them with"
            " `sysctl -w kernel.unprivileged_userns_clone=1` (Debian) or"
            " `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0` (Ubuntu); a container needs"
            " `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`."
        )

    def _hold(self, pid: int) -> None:
        try:
            self._first = os.pidfd_open(pid)
            self._first_pid = pid
            if self._group:
                self._group.add(pid)
        except OSError as error:
            raise StartError(f"its first process cannot be limited ({error})") from error

    def out_of_memory(self) -> str:
        """Ask the control group; without one, count the memory of all processes."""
        if self._group:
            return f"used all of its {self._memory_bytes / MIB:.0f} MB of memory" if self._group.oom_kills() else ""
        if self._has_ended(0.0):
            return ""
        processes = list(process_memory.tree(self._first_pid))
        return process_memory.excess(processes, self._memory_bytes, tmpfs_of=self._first_pid)

    def kill(self) -> None:
        """Kill the first process, and with it the whole process namespace."""
        if self._first is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._first, signal.SIGKILL)
        if self._group:
            self._group.kill()

    def exit_code(self, status: int) -> int:
        """Translate bubblewrap's status: like a shell, it reports a signal as 128 plus its number."""
        return 128 - status if status > 128 else status

    def close(self) -> None:
        """Wait for the last process, then release the resources and close the descriptor."""
        self._has_ended(_END_S)
        self._resources.release()
        if self._first is not None:
            os.close(self._first)
            self._first = None

    def _has_ended(self, wait_s: float) -> bool:
        """Tell whether the first process has ended; the kernel ends it last of all in its namespace."""
        return self._first is None or readable(self._first, wait_s)


def _child_pid(info_read: int) -> int:
    """Read from bubblewrap's report the process id of the first process in the namespace."""
    text = b""
    while not text.rstrip().endswith(b"}"):
        ready = readable(info_read, _START_S)
        part = os.read(info_read, 4096) if ready else b""
        if not part:
            raise StartError("bubblewrap did not start" if ready else f"bubblewrap took more than {_START_S:g} s")
        text += part
    return int(json.loads(text)["child-pid"])
