"""A function that takes too much time or memory, fails, or ends its process gives no result and harms no later call."""

import os
import resource
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from autograder.classroom.pages.limited_process import LimitedProcess


def obey(order: str) -> str:
    if order == "loops":
        while True:
            pass
    if order == "fails":
        raise ValueError(order)
    if order == "recurs":
        return obey(order)
    if order == "ends":
        os._exit(3)
    if order == "grows":
        return "x" * (4 << 30)
    if order == "files":
        return " ".join(path.name for path in Path("/proc/self/fd").iterdir())
    if order == "limits":
        return str(resource.getrlimit(resource.RLIMIT_CPU)[0])
    return order.upper()


@pytest.fixture
def process() -> Iterator[LimitedProcess]:
    made = LimitedProcess(obey)
    yield made
    made.close()


@pytest.mark.parametrize("order", ["loops", "fails", "recurs", "ends", "grows"])
def test_what_does_not_end_well_has_no_result_and_the_next_call_has_one(order: str, process: LimitedProcess) -> None:
    started_s = time.monotonic()

    assert process.call({"order": order}, cpu_s=0.2)[0] is None
    assert process.call({"order": "ada"}, cpu_s=0.2)[0] == "ADA"
    assert time.monotonic() - started_s < 10


def test_a_call_tells_what_it_took(process: LimitedProcess) -> None:
    assert process.call({"order": "loops"}, cpu_s=0.2) == (None, 0.2)
    assert 0 <= process.call({"order": "ada"}, cpu_s=0.2)[1] < 0.2


def test_the_process_holds_no_file_of_its_parent(process: LimitedProcess, tmp_path: Path) -> None:
    with (tmp_path / "journal").open("w") as journal:
        held, _ = process.call({"order": "files"}, cpu_s=1.0)

        assert str(journal.fileno()) not in str(held).split()
        assert len(str(held).split()) <= 5  # the standard three, its pipe, and the folder that it lists


def test_a_process_that_was_killed_is_replaced(process: LimitedProcess) -> None:
    process.call({"order": "ada"}, cpu_s=0.2)
    os.kill(process._process, signal.SIGKILL)
    os.waitpid(process._process, 0)

    assert process.call({"order": "bob"}, cpu_s=0.2)[0] == "BOB"


def test_limits_of_the_parent_are_no_limits_of_all_calls_together() -> None:
    child = os.fork()
    if child == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CPU, (20, 30))
            resource.setrlimit(resource.RLIMIT_AS, (200 << 30, 200 << 30))
            limits, _ = LimitedProcess(obey).call({"order": "limits"}, cpu_s=1.0)
            os._exit(0 if limits == "30" else 1)
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_fork_of_the_parent_has_a_process_of_its_own(process: LimitedProcess) -> None:
    process.call({"order": "ada"}, cpu_s=0.2)
    child = os.fork()
    if child == 0:
        try:
            right = process.call({"order": "cy"}, cpu_s=0.2)[0] == "CY"
            process.close()
            os._exit(0 if right else 1)
        finally:
            os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert process.call({"order": "bob"}, cpu_s=0.2)[0] == "BOB"
