"""Memory counted from outside, without a control group."""

import os
import subprocess
import sys
from collections.abc import Callable

from autograder.host.sandbox import Ending, Sandbox
from autograder.host.sandbox.resources import process_memory
from tests.autograder.host.sandbox.conftest import LIMITS, MIB

SHARED = f"""
import os, time
held = bytearray(b"x") * {80 * MIB}
children = []
for _ in range(4):
    child = os.fork()
    if child == 0:
        time.sleep(0.4)
        os._exit(0)
    children.append(child)
print([os.waitpid(child, 0)[1] for child in children])
"""


def test_pages_that_processes_share_count_once(tier: Sandbox, run: Callable[..., Ending]) -> None:
    assert run(tier, SHARED) == Ending("exited", 0, "[0, 0, 0, 0]\n")


def test_the_sentence_on_used_memory_names_its_parts() -> None:
    said = process_memory.excess([os.getpid()], 1 * MIB)

    assert said.startswith("used ")
    assert said.endswith(" and 0 MB in files, where 1 MB are allowed")  # the host's own /tmp does not count


def test_memory_below_the_limit_is_no_excess() -> None:
    assert process_memory.excess([os.getpid()], 1 << 50) == ""


def test_the_tree_holds_grandchildren() -> None:
    nested = (
        "import os, time\n"
        "if os.fork() == 0:\n"
        "    if os.fork() == 0: os.write(1, b'x'); time.sleep(20)\n"
        "    os.wait()\n"
        "os.wait()"
    )
    with subprocess.Popen([sys.executable, "-c", nested], stdout=subprocess.PIPE, start_new_session=True) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        assert len(list(process_memory.tree(process.pid))) == 3
        os.killpg(process.pid, 9)


def test_an_ended_process_uses_nothing() -> None:
    with subprocess.Popen([sys.executable, "-c", "pass"]) as process:
        process.wait()

    assert process_memory.excess([process.pid], LIMITS.memory_bytes) == ""
