"""A command that is killed is told in one sentence, and does not outlive the process that waits for it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.classroom.supervisor import supervised
from tests.architecture.source_tree import ROOT

FORK = multiprocessing.get_context("fork")


def ended(command: Callable[[], int], output: Path) -> tuple[int | None, str]:
    """Run a supervised command in a process of its own; return its exit status, and what was printed."""

    def run() -> None:
        sys.stderr = output.open("w")
        sys.exit(supervised("autograder", command))

    process = FORK.Process(target=run)
    process.start()
    process.join()
    return process.exitcode, output.read_text()


def killed(number: int) -> int:
    os.kill(os.getpid(), number)
    return 0


KILLED = "autograder: the system ended it, {}; what was graded is kept: run the same command again.\n"


@pytest.mark.parametrize("status", [0, 2, 4])
def test_the_status_of_a_command_is_passed_on(tmp_path: Path, status: int) -> None:
    assert ended(lambda: status, tmp_path / "said") == (status, "")


@pytest.mark.parametrize(
    ("number", "why"), [(signal.SIGKILL, "as it does where memory runs out"), (signal.SIGUSR1, "by signal 10")]
)
def test_a_command_that_is_killed_is_told_in_one_sentence(tmp_path: Path, number: int, why: str) -> None:
    assert ended(lambda: killed(number), tmp_path / "said") == (4, KILLED.format(why))


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_command_ends_with_the_process_that_waits_for_it(tmp_path: Path, number: int) -> None:
    def wait() -> int:
        (tmp_path / "part").write_text(str(os.getpid()))
        (tmp_path / "part").rename(tmp_path / "pid")
        time.sleep(600)
        return 0

    process = FORK.Process(target=lambda: supervised("autograder", wait))
    process.start()
    while not (tmp_path / "pid").exists():
        time.sleep(0.01)
    assert process.pid is not None
    os.kill(process.pid, number)
    process.join()
    deadline = time.monotonic() + 60
    while is_there(int((tmp_path / "pid").read_text())) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not is_there(int((tmp_path / "pid").read_text()))


def is_there(pid: int) -> bool:
    """Tell whether a process runs; one that ended may wait for init to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_process_that_waits_has_not_imported_torch() -> None:
    asked = "import sys, autograder.classroom.start; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", asked], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout == "False\n"
