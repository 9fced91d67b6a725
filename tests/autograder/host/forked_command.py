"""Type a command of this environment without waiting for its imports: in a fork of this process.

What this process has imported, the fork has too; everything else is the command's own: process, folder, environment,
output, exit status. It begins as the installed script or `python -m` begins.
"""

import multiprocessing
import os
import runpy
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TextIO


@dataclass
class Forked:
    """A command that runs, and what it prints, errors included."""

    process: BaseProcess
    output: TextIO

    def finish(self) -> tuple[int, str]:
        """Wait for its end; returns the exit status and what it printed since anybody read."""
        with self.output:
            printed = self.output.read()
        self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode, printed


def fork_command(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Forked:
    """Start `command`, a Python script with its arguments or `-m` and a module, in `folder`."""
    reading, writing = os.pipe()
    forked = multiprocessing.get_context("fork")
    process = forked.Process(target=become, args=(list(command), folder, dict(environment), writing))
    process.start()
    os.close(writing)
    return Forked(process, os.fdopen(reading, encoding="utf-8", errors="replace"))


def become(command: list[str], folder: Path, environment: Mapping[str, str], output: int) -> None:
    """Be that command from now on, in a process that was forked for it, and print to the descriptor `output`."""
    for descriptor in (1, 2):
        os.dup2(output, descriptor)
    os.close(output)
    sys.stdout = sys.stderr = os.fdopen(1, "w", buffering=1, closefd=False, encoding="utf-8", errors="backslashreplace")
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    if command[0] == "-m":
        sys.argv = command[1:]
        runpy.run_module(command[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command
        runpy.run_path(command[0], run_name="__main__")
