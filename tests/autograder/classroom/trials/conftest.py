"""An exchange folder that other users can reach, a server with a judge that costs nothing, and two students."""

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.classroom.trials import inbox
from autograder.classroom.trials.board import Board
from autograder.classroom.trials.inbox import Inbox
from autograder.classroom.trials.serve_command import make_folders
from autograder.classroom.trials.server import TrialServer
from autograder.host.exercise import Exercise
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus
from autograder.host.spool import Places, TrialReply, opened_folder, read_reply
from tests.autograder.classroom.trials.students import ACCOUNTS


@pytest.fixture(autouse=True)
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the students and this user have accounts, and nobody else."""

    def by_uid(uid: int) -> SimpleNamespace:
        return SimpleNamespace(pw_name={os.geteuid(): "teacher", **ACCOUNTS}[uid])

    monkeypatch.setattr(inbox, "pwd", SimpleNamespace(getpwuid=by_uid))


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    """Make the exchange as nbgrader makes it, and the folders of trials in it."""
    top = Path(tempfile.mkdtemp(prefix="trials"))  # pytest's folder is closed to other users
    top.chmod(0o755)
    exchange = top / "exchange"
    exchange.mkdir()
    exchange.chmod(0o777)
    monkeypatch.setenv("COURSE_EXCHANGE", str(exchange))
    made = Places(exchange, "fusion-course")
    make_folders(made)
    yield made
    shutil.rmtree(top)


class Judge:
    """Give full points to everything, and remember what was judged."""

    def __init__(self) -> None:
        self.judged: list[tuple[Exercise, Mapping[str, str]]] = []

    def __call__(self, exercise: Exercise, answers: Mapping[str, str]) -> ExerciseRecord:
        self.judged.append((exercise, answers))
        check = CheckRecord("a check", "values", False, CheckStatus.PASSED, 2, 2)
        return ExerciseRecord(exercise.id, "value", 2, 2, ExerciseStatus.GRADED, checks=(check,))


@pytest.fixture
def judge() -> Judge:
    return Judge()


@pytest.fixture
def start(places: Places, judge: Judge) -> Iterator[Callable[..., TrialServer]]:
    """Return a function that opens a server on the exchange, as a start of the command does."""
    opened: list[int] = []

    def begin(
        every_s: float = 0.0, board: Board | None = None, clock: Callable[[], float] | None = None
    ) -> TrialServer:
        taken = places.taken / "machine"
        taken.mkdir(exist_ok=True)
        folders = [opened_folder(path, listed=True) for path in (places.inbound, taken, places.replies)]
        opened.extend(folders)
        said: list[str] = []
        waiting = Inbox(folders[0], places.inbound, every_s, clock or time.monotonic, said.append)
        server = TrialServer(waiting, folders[1], folders[2], judge, "device cpu", board, say=said.append)
        vars(server)["said"] = said
        return server

    yield begin
    for folder in opened:
        os.close(folder)


@pytest.fixture
def reply_to(places: Places) -> Callable[[str], TrialReply]:
    """Return a function that reads the reply to a letter."""
    return lambda name: read_reply((places.replies / name).read_bytes())
