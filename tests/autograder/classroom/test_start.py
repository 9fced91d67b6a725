"""A command that grades one answer starts the process that workers are forked from beside the import of torch."""

import json
import os
import re
import subprocess
import sys
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
COMMANDS: list[tuple[tuple[str, ...], int, str]] = [
    (("autograder", "--help"), 0, "3 submission not gradable"),
    (("autograder", "check", "00_read_a_table", str(ANSWER), "--seed", "1"), 0, "? passed"),
    (("autograder", "check", "00_read_a_table", "/nowhere/\u2713.py"), 3, ".py cannot be read"),
    (("autograder", "exercises"), 0, "00_read_a_table"),
    (("demo", "--help"), 0, "every mark"),
]
TYPED = """
import json, runpy, sys
from pathlib import Path
from autograder.classroom.status import use_utf8

def correct():
    from autograder.classroom.nbgrader.quarantine import correct_submissions
    print(correct_submissions(Path(sys.argv[1]) / "submitted", Path(sys.argv[1]) / "aside", ["00_start_here"]))

ended, *commands = json.loads(sys.argv[2])
if sys.getfilesystemencoding() != "utf-8":
    correct()
    print(ended, "ascii")
use_utf8()
correct()
print(ended, "utf-8")
for command in commands:
    sys.stdout.reconfigure(errors="strict")
    sys.argv = command
    try:
        runpy.run_module(command[0], run_name="__main__", alter_sys=True)
    except SystemExit as end:
        print(ended, end.code or 0)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    """What each step on a terminal without other letters prints, and how it ends.

    All are steps of one process, which takes seconds to import what they share. After the first it starts again.
    """
    folder = tmp_path_factory.mktemp("classroom")
    (folder / "submitted" / "Jos\u00e9").mkdir(parents=True)
    ended = "that was step"
    given = json.dumps([ended, *(command for command, _, _ in COMMANDS)])
    done = subprocess.run(
        [sys.executable, "-u", "-c", TYPED, str(folder), given],
        cwd=ROOT,
        env={**os.environ, **ASCII, "HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    steps = re.findall(rf"(.*?){ended} (\S+)\n", done.stdout.decode("ascii"), re.DOTALL)
    assert len(steps) == 2 + len(COMMANDS), done.stdout.decode("ascii")
    return steps


@pytest.mark.parametrize("number", range(len(COMMANDS)), ids=[" ".join(given[:2]) for given, _, _ in COMMANDS])
def test_a_terminal_without_other_letters_than_ascii_stops_no_command(
    number: int, printed: list[tuple[str, str]]
) -> None:
    _, status, words = COMMANDS[number]
    said, ended = printed[2 + number]
    assert (ended, "Traceback" in said) == (str(status), False), said
    assert words in said


def test_a_folder_with_an_accent_is_a_students_folder_in_every_locale(printed: list[tuple[str, str]]) -> None:
    (in_ascii, _), (in_utf8, ended) = printed[:2]
    assert "is not a student's folder" in in_ascii
    assert (in_utf8, ended) == ("[]\n", "utf-8")


@pytest.mark.parametrize("locale", [ASCII, {"LC_ALL": "C.UTF-8"}])
def test_a_process_goes_on_in_utf8_with_its_arguments(locale: dict[str, str]) -> None:
    program = (
        "from autograder.classroom.status import use_utf8; use_utf8(); import sys; print(ascii(sys.argv), sys.flags)"
    )
    command = [sys.executable, "-c", program, "an argument", "Jos\u00e9"]
    said = subprocess.check_output(command, cwd=ROOT, env={**os.environ, **locale}).decode("ascii")
    assert said.startswith("['-c', 'an argument', 'Jos\\xe9'] ")
    assert ("utf8_mode=1" in said) == (locale is ASCII)


def test_a_command_uses_utf8_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    monkeypatch.setattr(sys, "argv", ["autograder", "exercises"])
    for name in ("use_utf8", "print_anything"):
        monkeypatch.setattr(start, name, lambda name=name: steps.append(name))
    monkeypatch.setattr(cli, "main", lambda given: steps.append(given[0]) or 0)
    assert start.main() == 0
    assert start.main(["exercises"]) == 0
    assert steps == ["use_utf8", "print_anything", "exercises", "print_anything", "exercises"]
