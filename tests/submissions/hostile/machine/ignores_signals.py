"""Strategy: ignore every signal that can be ignored, and answer when it likes. Surface: signal handlers, an uninterruptible loop.

Class: machine. Unprotected: grader process gives way. Level: 2.
Must get 0: a worker is ended by SIGKILL to its whole namespace, when the exercise's time is over.
"""

import signal
import time


def read_graph(target):
    for number in range(1, 65):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    deadline = time.monotonic() + target["wall_s"] + 2
    while time.monotonic() < deadline:
        time.sleep(0.05)
    return "outlived its time"
