"""Say in one sentence that the system killed a long command, as it does where memory runs out.

A killed process says nothing itself. So the command runs in a fork of a process that has imported nothing large and
waits. Whoever kills that process ends the command, too.
"""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from autograder.classroom.status import OUR_FAILURE

PR_SET_PDEATHSIG = 1
FORWARDED = (signal.SIGTERM, signal.SIGHUP)


def supervised(name: str, command: Callable[[], int]) -> int:
    """Run `command` in a fork of this process and return its exit status; print a sentence if it was killed.

    >>> supervised("autograder", lambda: 0)
    0
    """
    here = os.getpid()
    child = os.fork()
    if child == 0:
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != here:  # it ended before that call
            os._exit(OUR_FAILURE)
        sys.exit(command())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal interrupts both; the command says what it kept

    def forward(number: int, _: FrameType | None) -> None:
        os.kill(child, number)

    for number in FORWARDED:
        signal.signal(number, forward)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code >= 0:
        return code
    why = "as it does where memory runs out" if code == -signal.SIGKILL else f"by signal {-code}"
    print(f"{name}: the system ended it, {why}; what was graded is kept: run the same command again.", file=sys.stderr)
    return OUR_FAILURE
