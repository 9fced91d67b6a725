"""A step that raises, hangs, fills memory or disk, or ends its process is one hand-in's; the next one works."""

import os
import re
import signal
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autograder.classroom.nbgrader.course import NbgraderError
from autograder.classroom.nbgrader.wall import StepLimits, Wall

LIMITS = StepLimits(cpu_s=1, memory_bytes=128 << 20, file_bytes=1 << 20)


def _raises(_: Path) -> None:
    raise NbgraderError("nbgrader autograde x: it is so.")


def _unexpected(_: Path) -> None:
    raise ZeroDivisionError("nobody expected this")


def _recurses(place: Path) -> None:
    _recurses(place)


def _exits(_: Path) -> None:
    raise SystemExit(3)


def _loops_in_python(_: Path) -> None:
    while True:
        pass


def _loops_in_c(_: Path) -> None:
    re.match(r"(a*)*b", "a" * 60)  # does not look for signals


def _waits(_: Path) -> None:
    time.sleep(60)


def _takes_memory(_: Path) -> None:
    bytes(1 << 30)


def _fills_the_disk(place: Path) -> None:
    (place / "page.html").write_bytes(bytes(2 << 20))


def _leaves(_: Path) -> None:
    os._exit(7)


def _is_killed(_: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


CASES = {
    _raises: "nbgrader autograde x: it is so.",
    _unexpected: "ZeroDivisionError: nobody expected this",
    _recurses: "RecursionError",
    _exits: "SystemExit: 3",
    _loops_in_python: "needed more than 1 s of processor time",
    _loops_in_c: "needed more than 1 s of processor time",
    _waits: "did not end within 0.5 s",
    _takes_memory: "needed too much memory",
    _fills_the_disk: "File too large",
    _leaves: "exit status 7",
    _is_killed: "was killed",
}


@pytest.mark.parametrize(("fails", "words"), CASES.items(), ids=lambda value: getattr(value, "__name__", "").strip("_"))
def test_what_fails_behind_the_wall_is_one_sentence_and_the_next_step_works(
    tmp_path: Path, fails: Callable[[Path], None], words: str
) -> None:
    def do(step: str, assignment: str, student: str) -> None:
        (tmp_path / student).write_text(str(os.getpid()))
        if student == "mallory":
            fails(tmp_path)

    with Wall(do, replace(LIMITS, wall_s=0.5) if fails is _waits else LIMITS) as wall:
        with pytest.raises(NbgraderError, match=re.escape(words)) as caught:
            wall.do("autograde", "x", "mallory")
        wall.do("autograde", "x", "ada")
        wall.do("autograde", "x", "bob")
    assert "\n" not in str(caught.value)
    pids = {student: int((tmp_path / student).read_text()) for student in ("mallory", "ada", "bob")}
    assert os.getpid() != pids["mallory"] != pids["ada"] == pids["bob"]
    assert not Path("/proc", str(pids["bob"])).exists()


def test_processor_time_is_counted_for_each_hand_in() -> None:
    def do(*_: str) -> None:
        until = time.process_time() + 0.4
        while time.process_time() < until:
            pass

    with Wall(do, LIMITS) as wall:
        for student in "abcd":
            wall.do("autograde", "x", student)
