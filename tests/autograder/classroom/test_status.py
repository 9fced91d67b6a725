"""A command ends with the status of its error, and with one sentence; faults of the program are not hidden."""

import pytest

from autograder.classroom.batch import EngineError, JournalError
from autograder.classroom.nbgrader.course import NbgraderError
from autograder.classroom.nbgrader.release import ReleaseError
from autograder.classroom.roster import RosterError
from autograder.classroom.status import UsageError, run_command
from autograder.classroom.submission import SubmissionError
from autograder.exercises import UnknownExerciseError
from autograder.exercises.quality.survey import NotSurveyedError
from autograder.host.sandbox import SandboxError
from demo.class_file import ClassFileError
from demo.generated import TooSmallError

STATUSES = {
    UsageError: 2,
    UnknownExerciseError: 2,
    RosterError: 2,
    SubmissionError: 3,
    SandboxError: 4,
    JournalError: 4,
    EngineError: 4,
    NbgraderError: 4,
    NotSurveyedError: 4,
    ClassFileError: 4,
    TooSmallError: 4,
    OSError: 4,
}


def raising(error: BaseException) -> int:
    """Run a command that ends with `error`, and return its status."""

    def command() -> int:
        raise error

    return run_command("autograder", command)


@pytest.mark.parametrize(("kind", "status"), STATUSES.items(), ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_error_ends_the_command_with_its_status_and_one_sentence(kind, status, capsys) -> None:
    assert raising(kind("it is so.")) == status
    assert capsys.readouterr() == ("", "autograder: it is so.\n")


def test_a_command_without_memory_says_so_in_one_sentence(capsys) -> None:
    assert raising(MemoryError()) == 4
    assert capsys.readouterr().err == "autograder: memory ran out; free some and run the same command again.\n"


def test_a_refused_release_names_each_problem(capsys) -> None:
    assert raising(ReleaseError(["a is wrong.", "b is wrong."])) == 3
    assert capsys.readouterr().err.splitlines() == [
        "autograder: release refused, 2 problem(s):",
        "  a is wrong.",
        "  b is wrong.",
    ]


def test_whoever_stops_reading_is_told_nothing_and_a_fault_is_raised(capsys) -> None:
    assert raising(BrokenPipeError()) == 4
    assert capsys.readouterr().err == ""
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError("ours"))
    assert run_command("autograder", lambda: 1) == 1
