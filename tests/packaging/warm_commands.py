"""Type Python's commands in forks of one process that has imported what they import of others.

Each of some ten commands of a text would import torch by itself, which takes longer than most of what they do. Nothing
of the project is imported before a fork, so a command sees the files as they are when it is typed.
Run as a program, this file is that process: it forks for every order on its socket, until that is closed.
"""

import atexit
import gc
import importlib
import json
import os
import runpy
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

IMPORTS = ("torch._dynamo", "torch._inductor.compile_fx", "torch.fx.experimental.symbolic_shapes", "nbformat", "pytest")
BYTES = 1 << 20


@contextmanager
def warm_commands(folder: Path, environment: Mapping[str, str]) -> "Iterator[WarmCommands]":
    """Start the process that commands in `folder` are forked from."""
    control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            [sys.executable, __file__, str(theirs.fileno())], cwd=folder, env=environment, pass_fds=(theirs.fileno(),)
        )
    with control:
        yield WarmCommands(control)
    process.wait()


@dataclass(frozen=True)
class WarmCommands:
    """The process that commands are forked from, as a test sees it."""

    control: socket.socket

    def run(self, words: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
        """Run a script with its arguments, or `-m` and a module; return the exit status and what it printed."""
        order = json.dumps({"words": words, "variables": variables}).encode()
        with tempfile.TemporaryFile() as said:
            socket.send_fds(self.control, [order], [said.fileno()])
            status = int(self.control.recv(BYTES))
            said.seek(0)
            return status, said.read().decode()


def serve(control: socket.socket) -> None:
    """Import, and then fork for every order; the answer is the exit status."""
    gc.disable()  # while it imports: all of that stays
    for name in IMPORTS:
        importlib.import_module(name)
    assert len(list(Path("/proc/self/task").iterdir())) == 1, "a thread would be lost in a fork"
    gc.collect()
    gc.freeze()
    gc.enable()
    while True:
        message, descriptors, _, _ = socket.recv_fds(control, BYTES, 1)
        if not message:
            return
        child = os.fork()
        if child == 0:
            control.close()
            os._exit(become(descriptors[0], **json.loads(message)))
        os.close(descriptors[0])
        control.send(str(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])).encode())


def become(output: int, words: list[str], variables: dict[str, str]) -> int:
    """Be that command from now on, print to the descriptor `output`, and return the exit status."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.update(variables)
    sys.argv = words[words[0] == "-m" :]
    status: object = 0
    try:
        if words[0] == "-m":
            runpy.run_module(words[1], run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        status = end.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    return status if isinstance(status, int) else int(status is not None)


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # noqa: PTH109 - as `python -m` has it
    serve(socket.socket(fileno=int(sys.argv[1])))
