"""The demonstration end to end on a small class: a killed one is taken up again, and a wrong mark ends non-zero."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from autograder.exercises import find, of_assignment
from demo import __main__ as command
from demo.outcome import _faults
from tests.architecture.source_tree import ROOT
from tests.autograder.classroom.pages.page_scan import pages_that_load_or_run
from tests.autograder.host.forked_command import fork_command

ANSWER = "# %% answer 04_read_a_graph = {marks}\ndef read_graph(rows):\n    return {{}}\n"
NAME = "04_fx_capture"
HIDDEN = next(c for c in find("04_read_a_graph", hidden=True).checks if c.hidden and c.name != c.category)
PAGE = " ".join(of_assignment(NAME))


def places(tmp_path: Path) -> list[str]:
    named = {"--work": tmp_path / "work", "--class": tmp_path / "class", "--report": tmp_path / "report"}
    return [str(word) for pair in named.items() for word in pair]


@pytest.fixture
def demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[], tuple[int, str]]:
    """Run the demonstration in this process, which has a sandbox already; returns its exit status and what it says."""
    for name in ("COURSE_WORK", "COURSE_EXCHANGE"):  # which it sets, and which are to be as they were
        monkeypatch.setenv(name, str(tmp_path / "work"))
    monkeypatch.setenv("PATH", os.defpath)

    def run() -> tuple[int, str]:
        return command.main(places(tmp_path)), capsys.readouterr().out

    return run


def add(tmp_path: Path, kind: str, name: str, marks: int) -> None:
    (tmp_path / "class" / kind).mkdir(parents=True, exist_ok=True)
    (tmp_path / "class" / kind / f"{name}.py").write_text(f'"""About."""\n{ANSWER.format(marks=marks)}')


def seed_in(output: str) -> str:
    return re.findall(r"fingerprint is (\w{8})", output)[0]


def journal_of(tmp_path: Path) -> list[bytes]:
    return (tmp_path / "work" / "journal.jsonl").read_bytes().splitlines()


def killed_after_the_first_record(tmp_path: Path) -> str:
    """What a demonstration said until it was killed."""
    module, environment = ["-m", "demo"], {**os.environ, "PATH": os.defpath}
    said, killed = "", fork_command([*module, *places(tmp_path)], ROOT, environment)
    for line in killed.output:
        said += line
        if line.startswith("Grade 1/"):
            break
    killed.process.kill()
    killed.finish()
    return said


@pytest.mark.slow
@pytest.mark.usefixtures("quick_gradebooks")
def test_a_killed_demonstration_goes_on_a_finished_one_starts_afresh_and_a_wrong_mark_is_told(
    tmp_path: Path, demo: Callable[[], tuple[int, str]]
) -> None:
    for number in range(3):
        add(tmp_path, "mistaken", f"modest_{number}", marks=0)
    said = killed_after_the_first_record(tmp_path)
    written = len(journal_of(tmp_path))
    assert written >= 1

    status, again = demo()
    assert status == 0, again
    assert f"going on with {written} records from its journal" in again
    assert f"{written} records were taken from the journal" in again
    assert seed_in(again) == seed_in(said)
    assert len(journal_of(tmp_path)) == len(set(journal_of(tmp_path))) == 3

    for path in (tmp_path / "class" / "mistaken").iterdir():
        path.unlink()
    add(tmp_path, "honest", "too_proud", marks=6)
    add(tmp_path, "mistaken", "modest", marks=0)
    status, third = demo()
    assert status == 1, third
    assert "journal of the interrupted run" not in third
    assert seed_in(third) != seed_in(said)
    wrong = [line for line in third.splitlines() if line.startswith("DIFFERENT")]
    assert len(wrong) == 2
    assert all("too_proud" in line for line in wrong)
    assert (tmp_path / "report" / "index.html").exists()
    assert pages_that_load_or_run(tmp_path) == {}


def test_a_page_without_an_exercise_is_named() -> None:
    assert list(_faults(PAGE, NAME, "")) == []
    assert list(_faults(PAGE.replace("04_read_a_graph", ""), NAME, "")) == ["lacks 04_read_a_graph"]


def test_a_page_that_shows_a_hidden_check_is_named_unless_its_student_wrote_that() -> None:
    page = f"{PAGE} {HIDDEN.name}"
    assert list(_faults(page, NAME, "")) == [f"shows the hidden check {HIDDEN.name!r}"]
    assert list(_faults(page, NAME, f"# {HIDDEN.name}")) == []
