"""The class report names what `zip_collect` left out, among all that needs a person."""

import pytest

from autograder.classroom.cli import main
from autograder.classroom.nbgrader import left_out as module
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.left_out import LeftOut, keep_left_out, left_out
from tests.autograder.classroom.nbgrader.small_course import base, course, graded, place
from tests.autograder.classroom.nbgrader.test_cycle import NAME

__all__ = ["base", "course", "place"]  # fixtures


def test_the_class_report_names_what_zip_collect_left_out(course: Course) -> None:
    work = course.journal.parent
    lost = LeftOut(NAME, "<b>Eve</b>_9_assignsubmission_file_/answer.docx", "<i>Eve</i> handed in no notebook")
    keep_left_out(work, NAME, [lost], [])

    done = graded(course)

    page = done.page.read_text()
    assert "&lt;b&gt;Eve&lt;/b&gt;_9_assignsubmission_file_/answer.docx" in page
    assert "left it out: &lt;i&gt;Eve&lt;/i&gt; handed in no notebook. Copy it by hand into" in page
    assert "[decide]" in next(line for line in done.text.splitlines() if "answer.docx" in line)
    assert len(done.records) == 2
    keep_left_out(work, NAME, [], [lost.path])
    assert "answer.docx" not in graded(course).text


def test_a_dismissal_holds_for_the_same_bytes_and_not_for_another_file_at_its_path(course: Course) -> None:
    work, empty = course.journal.parent, LeftOut(NAME, "Eve_9/a.ipynb", "it names no student", "0" * 64)
    keep_left_out(work, NAME, [empty], [])
    assert main(["left-out", "--dismiss", empty.id]) == 0
    keep_left_out(work, NAME, [empty], [empty.path])
    assert [one.dismissed for one in left_out(work)] == [True]
    keep_left_out(work, NAME, [LeftOut(NAME, empty.path, empty.why, "1" * 64)], [empty.path])
    assert [one.dismissed for one in left_out(work)] == [False]


def test_two_files_with_one_id_are_both_kept(course: Course, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_ID_CHARACTERS", 0)
    work = course.journal.parent
    keep_left_out(work, NAME, [LeftOut(NAME, path, "it names no student") for path in ("a.ipynb", "b.ipynb")], [])
    assert main(["left-out", "--dismiss", ""]) == 0
    assert [one.path for one in left_out(work)] == ["a.ipynb", "b.ipynb"]


def test_the_command_says_that_nothing_is_left_out(course: Course, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["left-out"]) == 0
    assert capsys.readouterr().out == "Nothing is left out.\n"
