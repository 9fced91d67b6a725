"""The zygote of levels 3 to 5, where nothing is mounted: a process of this user that imports from a folder of links."""

import atexit
import socket
import subprocess
import sys
from pathlib import Path

from autograder.host.sandbox.interpreter import ZYGOTE, environment, interpreter_arguments
from autograder.host.sandbox.resources import folder
from autograder.host.sandbox.zygote.pool import Zygote


def make_course() -> Path:
    """Return a folder with what a zygote imports, removed with the host.

    It holds nothing of course_lib, since each job masks other parts of it.
    """
    private = folder.make()
    private.chmod(0o755)
    root = folder.link_course(private, ())
    (root / "course_lib").unlink()
    atexit.register(folder.remove, private)
    return root


def start(course: Path, *, preload: bool) -> Zygote:
    """Start a zygote that imports from `course`; see `Sandbox._zygote`."""
    program = ZYGOTE.format(preload=preload)

    def spawn(control: socket.socket, complaints: int) -> subprocess.Popen[bytes]:
        arguments = interpreter_arguments(program, {"RLIMIT_CORE": 0}, channel=control.fileno(), path=str(course))
        return subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=complaints,
            stderr=complaints,
            env=environment("/"),
            cwd="/",
            pass_fds=(control.fileno(),),
            start_new_session=True,
        )

    return Zygote(spawn)
