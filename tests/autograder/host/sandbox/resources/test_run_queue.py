"""The kernel tells of a tree of processes how long they waited for a processor."""

import math
import os
import subprocess
import sys
import time

from autograder.host.sandbox.resources.run_queue import waited_s

BUSY = "while True: pass"
PARENT = f"import subprocess, sys; subprocess.Popen([sys.executable, '-c', {BUSY!r}]).wait()"


def test_processes_that_share_one_processor_wait_and_one_that_sleeps_does_not():
    first = min(os.sched_getaffinity(0))
    pinned = ["taskset", "-c", str(first), sys.executable, "-c"]
    started = [
        subprocess.Popen(command, start_new_session=True)
        for command in ([*pinned, BUSY], [*pinned, PARENT], ["sleep", "60"])
    ]
    try:
        time.sleep(1.5)
        alone, parent, asleep = (waited_s(process.pid) for process in started)
    finally:
        for process in started:
            os.killpg(process.pid, 9)
            process.wait()
    assert 0.2 < alone < 1.6
    assert 0.2 < parent < 3.2  # its child is the one that waits
    assert asleep < 0.2


def test_where_nothing_can_be_read_the_wait_is_unknown():
    assert waited_s(0) == math.inf
