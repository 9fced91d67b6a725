"""A command that grades one answer starts the process that workers are forked from beside the import of torch."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from autograder.classroom import cli, sandbox_options, start
from autograder.host.sandbox import SandboxError
from tests.architecture.source_tree import ROOT


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was warmed, and then the arguments of the command."""
    steps: list[object] = []
    zygotes = SimpleNamespace(warm=lambda: steps.append("warm"))
    sandbox = SimpleNamespace(zygotes=zygotes, expect=steps.append)
    monkeypatch.setattr(sandbox_options, "open_sandbox", lambda level, **_: sandbox)
    monkeypatch.setattr(cli, "main", lambda arguments: steps.append(arguments) or 0)
    return steps


@pytest.mark.parametrize("command", ["check", "grade"])
def test_a_command_for_one_answer_begins_with_the_zygote(begun: list[object], command: str) -> None:
    assert start.main([command, "x.py", "--sandbox", "2"]) == 0
    assert begun == ["graphs", "warm", [command, "x.py", "--sandbox", "2"]]


@pytest.mark.parametrize("arguments", [["batch"], [], ["--help"], ["check", "x.py", "--sandbox", "7"]])
def test_other_commands_and_wrong_options_begin_without_it(begun: list[object], arguments: list[str]) -> None:
    start.main(arguments)
    assert begun == [arguments]


def test_a_machine_without_a_sandbox_is_for_the_command_to_explain(
    begun: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(level: object, **_: object) -> None:
        raise SandboxError("no level")

    monkeypatch.setattr(sandbox_options, "open_sandbox", refuse)
    assert start.main(["check", "x.py"]) == 0
    assert begun == [["check", "x.py"]]


def test_the_beginning_does_not_need_torch() -> None:
    program = "import sys, autograder.classroom.start; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 0


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}  # as on a machine without any locale
ANSWER = ROOT / "autograder/exercises/hidden/answers/start_here/read_a_table.py"


@pytest.mark.parametrize(
    ("command", "status", "words"),
    [
        (("-m", "autograder", "--help"), 0, "3 submission not gradable"),
        (("-m", "autograder", "check", "00_read_a_table", str(ANSWER), "--seed", "1"), 0, "? passed"),
        (("-m", "autograder", "check", "00_read_a_table", "/nowhere/\u2713.py"), 3, ".py cannot be read"),
        (("-m", "autograder", "exercises"), 0, "00_read_a_table"),
        (("-m", "demo", "--help"), 0, "every mark"),
    ],
)
def test_a_terminal_without_other_letters_than_ascii_stops_no_command(
    command: tuple[str, ...], status: int, words: str, tmp_path: Path
) -> None:
    environment = {**os.environ, **ASCII, "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, capture_output=True)
    assert (done.returncode, b"Traceback" in done.stderr) == (status, False), done.stderr.decode()
    assert words in (done.stdout + done.stderr).decode("ascii")


CORRECTED = """
import sys
from pathlib import Path
from autograder.classroom.nbgrader.quarantine import correct_submissions
{first}
print(sys.argv[2], correct_submissions(Path(sys.argv[1]), Path(sys.argv[1]) / "aside", ["00_start_here"]))
"""


@pytest.mark.parametrize("locale", [ASCII, {"LC_ALL": "C.UTF-8"}])
def test_a_folder_with_an_accent_is_a_students_folder_in_every_locale(locale: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "submitted" / "José").mkdir(parents=True)

    def corrected(first: str) -> str:
        command = [sys.executable, "-c", CORRECTED.format(first=first), str(tmp_path / "submitted"), "an argument"]
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, **locale}, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode("ascii").strip()

    assert corrected("from autograder.classroom.status import use_utf8; use_utf8()") == "an argument []"
    if locale["LC_ALL"] == "C":
        assert "is not a student's folder" in corrected("")


def test_a_command_uses_utf8_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(sys, "argv", ["autograder", "exercises"])
    for name in ("use_utf8", "print_anything"):
        monkeypatch.setattr(start, name, lambda name=name: steps.append(name))
    monkeypatch.setattr(cli, "main", lambda given: steps.append(given[0]) or 0)
    assert start.main() == 0
    assert start.main(["exercises"]) == 0
    assert steps == ["use_utf8", "print_anything", "exercises", "print_anything", "exercises"]
