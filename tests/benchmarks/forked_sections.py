"""Forks in place of the processes that the GPU check starts: what all of them import is imported once, before.

Everything else is as it would be: a session, folder, environment, output and exit status of its own.
"""

import faulthandler
import multiprocessing
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from tests.autograder.host.forked_command import become

# Called in each fork before its section begins, with the name of the section.
Before = Callable[[str], object]


class ForkedProcess:
    """Stands for `subprocess.Popen` of `python -m MODULE ...`."""

    def __init__(
        self, command: Sequence[str], cwd: Path, env: Mapping[str, str], output: int, before: Before | None
    ) -> None:
        forked = multiprocessing.get_context("fork")
        self._process = forked.Process(target=_begin, args=(command, cwd, dict(env), output, before))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit status, below 0 for a signal, or raise as a process does that is not awaited so long."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a fork", timeout or 0.0)
        return self._process.exitcode


def _begin(command: Sequence[str], folder: Path, environment: Mapping[str, str], output: int, before: Any) -> None:
    os.setsid()
    faulthandler.disable()  # pytest's; a section that crashes here is meant to
    if before is not None:
        sys.stdout = sys.stderr = os.fdopen(os.dup(output), "w", buffering=1)
        before(command[3])  # python -m benchmarks.gpu.running SECTION
    become(list(command[1:]), folder, environment, os.dup(output))


class ForkingSubprocess:
    """Stands for the module `subprocess` where sections and files of tests are started."""

    TimeoutExpired = subprocess.TimeoutExpired

    def __init__(self, before: Before | None = None, cold: Sequence[str] = ()) -> None:
        self._before, self._cold = before, cold  # sections that begin as processes all the same

    def Popen(  # noqa: N802  # the name it stands for
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], stdout: IO[bytes], **others: Any
    ) -> ForkedProcess | subprocess.Popen[bytes]:
        """Start a section."""
        if command[3] in self._cold:
            return subprocess.Popen(command, cwd=cwd, env=env, stdout=stdout, **others)
        return ForkedProcess(command, cwd, env, stdout.fileno(), self._before)

    def run(
        self, command: Sequence[str], *, cwd: Path, timeout: float, **others: Any
    ) -> subprocess.CompletedProcess[str]:
        """Run a file of tests to its end, and keep what it prints."""
        with tempfile.TemporaryFile("w+") as printed:
            process = ForkedProcess(command, cwd, os.environ, printed.fileno(), None)
            status = process.wait(timeout)
            printed.seek(0)
            return subprocess.CompletedProcess(command, status, printed.read(), "")


def main() -> None:
    """Run the script named on the command line, with the first section as a process and all others as forks of this."""
    import runpy

    import torch._dynamo
    import torch._inductor.pattern_matcher  # noqa: F401  # two sections import both, and so do the tests

    from benchmarks.gpu import running
    from benchmarks.gpu.sections import tests

    vars(running)["subprocess"] = vars(tests)["subprocess"] = ForkingSubprocess(cold=("machine",))
    sys.argv = sys.argv[1:]
    runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
