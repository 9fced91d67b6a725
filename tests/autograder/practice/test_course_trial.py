"""`check(..., on="course")`: the course's result where there is one, else one sentence and the check made here."""

import linecache
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus
from autograder.host.spool import Places, TrialReply, read_request, reply_bytes
from autograder.host.spool.places import FOLDER_MODES
from autograder.practice import check, course_trial, visible_checks
from autograder.practice.course_trial import CourseTrial, NoTrialError
from autograder.practice.errors import UnknownPlaceError

EXERCISE = "04_read_a_graph"
CHECK = CheckRecord("made there", "values", False, CheckStatus.PASSED, 1.0, 1.0)
THERE = ExerciseRecord(EXERCISE, "value", 1.0, 1.0, ExerciseStatus.GRADED, checks=(CHECK,))


CELL = "def read_graph(rows):\n    return rows\n"


@pytest.fixture
def read_graph() -> Any:
    """Run a cell as IPython runs it, and return the answer that it defines."""
    linecache.cache["cell_of_a_trial.py"] = (len(CELL), None, CELL.splitlines(keepends=True), "cell_of_a_trial.py")
    names: dict[str, Any] = {}
    exec(compile(CELL, "cell_of_a_trial.py", "exec"), names)
    return names["read_graph"]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(course_trial, "POLL_S", 0.01)
    monkeypatch.setattr(course_trial, "SILENT_S", 0.1)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("NBGRADER_EXECUTION", raising=False)
    monkeypatch.delenv("COURSE_EXCHANGE", raising=False)
    monkeypatch.setenv("JUPYTER_CONFIG_DIR", str(tmp_path / "config"))
    monkeypatch.setenv("JUPYTER_NO_CONFIG", "1")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Places:
    """Make the folders as the server makes them."""
    made = Places(tmp_path / "exchange", "fusion-course")
    for name, mode in FOLDER_MODES.items():
        (made.trials / name).mkdir(parents=True, exist_ok=True)
        (made.trials / name).chmod(mode)
    monkeypatch.setenv("COURSE_EXCHANGE", str(made.exchange))
    return made


@pytest.fixture
def answered(places: Places) -> Iterator[Callable[[bytes], list[str]]]:
    """Return a function that lets a thread reply with some bytes to the next request."""
    threads: list[threading.Thread] = []

    def reply_with(data: bytes) -> list[str]:
        seen: list[str] = []

        def work() -> None:
            for _ in range(100):
                for path in places.inbound.iterdir():
                    if not path.name.startswith("."):
                        seen.append(read_request(path.read_bytes()).answers[EXERCISE])
                        (places.replies / ".part").write_bytes(data)
                        (places.replies / ".part").rename(places.replies / path.name)
                        return
                threading.Event().wait(0.01)

        threads.append(threading.Thread(target=work))
        threads[-1].start()
        return seen

    yield reply_with
    for thread in threads:
        thread.join()


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, read_graph: Any) -> Any:
    """Let the check on this machine cost nothing, and return an answer to check."""
    record = ExerciseRecord(EXERCISE, "value", 0.5, 1.0, ExerciseStatus.GRADED)
    monkeypatch.setattr(visible_checks, "grade_exercise", lambda *_, **__: record)
    return read_graph


def asked() -> str:
    """Return why a trial has no result."""
    with CourseTrial(EXERCISE, {EXERCISE: "x = 1"}) as trial, pytest.raises(NoTrialError) as caught:
        trial.wait()
    return str(caught.value)


def test_the_result_of_the_courses_machine_is_shown(
    places: Places, here: Any, answered: Callable[[bytes], list[str]]
) -> None:
    sent = answered(reply_bytes(TrialReply("Checked on the course's machine (device cuda).", THERE)))
    score = check(EXERCISE, here, on="course")

    assert sent == [CELL]
    assert score == 1.0
    assert "made there" in str(score)
    assert "machine (device cuda)." in score._repr_html_()
    assert list(places.inbound.iterdir()) == [], "taken back once there is a reply"


def test_without_a_server_one_sentence_says_so_and_the_check_made_here_stands(places: Places, here: Any) -> None:
    score = check(EXERCISE, here, on="course")

    assert score == 0.5
    assert score.warnings[-1] == (
        "The course's machine takes no trials now: no sign of it for 0 seconds. This is the check on your machine."
    )
    assert list(places.inbound.iterdir()) == []


def test_a_refusal_is_shown_with_the_check_made_here(
    here: Any, places: Places, answered: Callable[[bytes], list[str]]
) -> None:
    answered(reply_bytes(TrialReply("No exercise is called so.")))
    score = check(EXERCISE, here, on="course")

    assert (float(score), score.warnings[-1]) == (0.5, "No exercise is called so. This is the check on your machine.")


def test_without_an_exchange_the_sentence_names_the_setting(here: Any) -> None:
    score = check(EXERCISE, here, on="course")

    assert score == 0.5
    assert "no nbgrader_config.py names one. This is the check on your machine." in score.warnings[-1]


def test_another_place_is_refused_with_both_that_exist() -> None:
    with pytest.raises(UnknownPlaceError, match='knows on="here" and on="course"'):
        check(EXERCISE, None, on="gpu")


def test_nbgrader_sends_nothing_when_it_validates(places: Places, here: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NBGRADER_EXECUTION", "validate")
    monkeypatch.setattr(visible_checks, "CourseTrial", lambda *_: pytest.fail("a trial was sent"))

    assert check(EXERCISE, here, on="course") == 0.5


def test_a_busy_server_is_waited_for_until_the_time_is_up(
    places: Places, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(course_trial, "WAIT_S", 0.4)
    alive, stopped = places.serving, threading.Event()

    def sign() -> None:
        number = 0
        while not stopped.wait(0.02):
            alive.touch()
            os.utime(alive, (number := number + 1, number))

    thread = threading.Thread(target=sign)
    thread.start()
    monkeypatch.setattr(course_trial, "TOLD_S", 0.2)
    said = asked()
    stopped.set()
    thread.join()

    assert said == "The course's machine is busy: no result within 0 seconds; try again later."
    assert capsys.readouterr().out == "Waiting for the course's machine, 0 seconds at most.\n"


def test_an_interrupted_check_takes_its_request_back(places: Places) -> None:
    with CourseTrial(EXERCISE, {EXERCISE: ""}) as trial:
        assert len(list(places.inbound.iterdir())) == 1
        assert trial.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None) is None
    assert list(places.inbound.iterdir()) == []


def test_nothing_is_sent_where_others_could_read_it(places: Places) -> None:
    places.exchange.chmod(0o777)
    assert "everybody can replace folders" in asked()
    places.exchange.chmod(0o1777)
    assert "takes no trials now" in asked()
    places.inbound.chmod(0o1777)
    assert "inbound is not a folder of mode 1733" in asked()
    places.inbound.rmdir()
    places.inbound.symlink_to(places.exchange)
    assert "inbound is not a folder of mode 1733" in asked()
    assert list(places.exchange.iterdir()) == [places.exchange / "fusion-course"]


def test_an_exchange_that_cannot_be_written_is_a_sentence(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(course_trial, "write_for", read_only)
    assert asked() == "The trial could not be put into the exchange folder (Read-only file system)."


def test_an_answer_that_is_too_long_is_a_sentence(places: Places) -> None:
    with CourseTrial(EXERCISE, {EXERCISE: "x" * 200_001}) as trial, pytest.raises(NoTrialError, match="cannot be sent"):
        trial.wait()


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"{}", reply_bytes(TrialReply("x", THERE))[:-9]])
def test_a_reply_that_cannot_be_read_is_a_sentence(
    places: Places, answered: Callable[[bytes], list[str]], data: bytes
) -> None:
    answered(data)
    assert asked().startswith("The reply of the course's machine cannot be read: it holds")


def test_a_reply_about_another_exercise_is_refused(places: Places, answered: Callable[[bytes], list[str]]) -> None:
    answered(reply_bytes(TrialReply("", ExerciseRecord("01_x", "value", 1.0, 1.0, ExerciseStatus.GRADED))))
    assert asked() == "The reply of the course's machine is about another exercise."


def test_a_text_of_the_reply_is_escaped_as_in_the_check_made_here(
    places: Places, here: Any, answered: Callable[[bytes], list[str]]
) -> None:
    check_there = CheckRecord("<script>", "values", False, CheckStatus.FAILED, 0.0, 1.0, "<img src=x onerror=alert(1)>")
    record = ExerciseRecord(EXERCISE, "value", 0.0, 1.0, ExerciseStatus.GRADED, checks=(check_there,))
    answered(reply_bytes(TrialReply("<script>", record)))
    shown = check(EXERCISE, here, on="course")._repr_html_()

    assert "<script" not in shown
    assert "<img" not in shown


def test_the_exchange_is_the_one_that_nbgrader_is_configured_with(tmp_path: Path) -> None:
    (tmp_path / "nbgrader_config.py").write_text(
        'c = get_config()\nc.CourseDirectory.course_id = "other"\nc.Exchange.root = "/srv/exchange"\n'
    )
    assert course_trial.exchange_places() == Places(Path("/srv/exchange"), "other")
    (tmp_path / "nbgrader_config.py").write_text("raise LookupError('here')")
    assert "cannot be read (LookupError: here)" in asked()
