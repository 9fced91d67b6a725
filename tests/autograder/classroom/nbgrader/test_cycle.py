"""nbgrader's whole cycle over a class of broken notebooks, with a grader that reads marks off the answer's text."""

import csv
import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from nbformat.notebooknode import from_dict
from nbgrader.api import Gradebook
from nbgrader.utils import compute_checksum

from autograder.classroom import exercise_versions
from autograder.classroom.batch import LocalEngine, records_in
from autograder.classroom.exercise_versions import version_of
from autograder.classroom.nbgrader import outside_kernel
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.classroom.nbgrader.releases import released_cells
from autograder.classroom.submission import read_bytes
from autograder.exercises import find, of_assignment
from autograder.host.records import ExerciseRecord, ExerciseStatus, SandboxRecord, SubmissionRecord
from tests.autograder.classroom.nbgrader.changed_settings import with_settings

NAME, ANSWER = "04_fx_capture", "04_read_a_graph"
FULL, OURS, HALF = "# full marks", "# an error of ours", "# half a pair"


class FakeSandbox:
    """Never starts anything."""

    level, notes, has_cuda, measures = 3, ("nothing ran",), False, False


def grade_by_text(assignment: str, student: str, answers: Mapping[str, str], **rest: Any) -> SubmissionRecord:
    exercises = []
    for name in of_assignment(assignment):
        text, most = answers.get(name, ""), find(name, hidden=True).points
        status = ExerciseStatus.GRADER_ERROR if OURS in text else ExerciseStatus.GRADED
        points = most if FULL in text else 0.0
        message = "no sandbox" if OURS in text else "half a surrogate pair: \ud800" if HALF in text else ""
        exercises.append(ExerciseRecord(name, "value", points, most, status, message))
    sandbox = SandboxRecord(3)
    return SubmissionRecord(assignment, student, rest["submission_sha256"], sandbox, tuple(exercises), rest["notes"])


def with_answer(notebook: dict[str, Any], text: str) -> dict[str, Any]:
    for cell in notebook["cells"]:
        if cell["metadata"].get("nbgrader", {}).get("grade_id") == ANSWER:
            cell["source"] = text
    return notebook


def graded_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [c for c in notebook["cells"] if "nbgrader" in c["metadata"]]


def _duplicated(notebook: dict[str, Any]) -> None:
    notebook["cells"] += [dict(c) for c in graded_cells(notebook)]


def _no_schema(notebook: dict[str, Any]) -> None:
    for cell in graded_cells(notebook):
        del cell["metadata"]["nbgrader"]["schema_version"]


def _all_deleted(notebook: dict[str, Any]) -> None:
    notebook["cells"] = []


def _check_deleted(notebook: dict[str, Any]) -> None:
    notebook["cells"] = [c for c in notebook["cells"] if not c["metadata"].get("nbgrader", {}).get("grade")]


def _all_markdown(notebook: dict[str, Any]) -> None:
    for cell in notebook["cells"]:
        cell["cell_type"] = "markdown"


def _points(notebook: dict[str, Any]) -> None:
    for cell in graded_cells(notebook):
        cell["metadata"]["nbgrader"] |= {"points": 600, "grade": True, "locked": False}


def _empty_metadata(notebook: dict[str, Any]) -> None:
    notebook["cells"][0]["metadata"]["nbgrader"] = {}
    notebook["metadata"] = {"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}, "autograder": 7}


def _forged_output(notebook: dict[str, Any]) -> None:
    for cell in graded_cells(notebook):
        data = {"text/plain": "6.0"}
        cell["outputs"] = [{"output_type": "execute_result", "data": data, "metadata": {}, "execution_count": 1}]


def _script(notebook: dict[str, Any]) -> None:
    notebook["cells"][0] |= {"cell_type": "markdown", "source": "<img src=x onerror=alert(1)><script>alert(2)</script>"}


CHANGES = {
    f.__name__.strip("_"): f for f in (_duplicated, _no_schema, _all_markdown, _points, _empty_metadata, _script)
}
WORTHLESS = {f.__name__.strip("_"): f for f in (_all_deleted,)}
FILES = {"cut_off": '{"cells": [', "nothing": ""}  # test_reading has more that cannot be read


def hand_in(course: Course, student: str, content: str | dict[str, Any]) -> Path:
    folder = course.submitted / student / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text(json.dumps(content) if isinstance(content, dict) else content)
    return folder


def shorten(path: Path) -> str:
    """Leave the lesson out of a released notebook, but for its beginning; nbgrader reads each cell many times."""
    notebook = json.loads(path.read_text())
    notebook["cells"] = [*notebook["cells"][:3], *(c for c in graded_cells(notebook) if c not in notebook["cells"][:3])]
    path.write_text(json.dumps(notebook))
    return path.read_text()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Iterator[Course]:
    patch = pytest.MonkeyPatch()
    patch.setenv("COURSE_WORK", str(tmp_path_factory.mktemp("work")))
    patch.setattr("autograder.classroom.hand_in.grade_answers", grade_by_text)
    patch.setattr(outside_kernel, "_open_once", lambda *_: FakeSandbox())
    course = open_course()
    release(course, [NAME])
    released = shorten(course.release / NAME / f"{NAME}.ipynb")
    hand_in(course, "honest", with_answer(json.loads(released), FULL))
    hand_in(course, "untouched", json.loads(released))
    hand_in(course, "half", with_answer(json.loads(released), f"{FULL}{HALF}"))
    hand_in(course, "ours", with_answer(json.loads(released), OURS))
    for name, change in (CHANGES | WORTHLESS).items():
        notebook = with_answer(json.loads(released), FULL)
        change(notebook)
        hand_in(course, name, notebook)
    for name, change in {"check_deleted": _check_deleted, "forged_output": _forged_output}.items():
        notebook = with_answer(json.loads(released), FULL if name == "check_deleted" else "")
        change(notebook)
        hand_in(course, name, notebook)
    for name, content in FILES.items():
        hand_in(course, name, content)
    hand_in(course, "renamed", with_answer(json.loads(released), FULL)).joinpath(f"{NAME}.ipynb").rename(
        course.submitted / "renamed" / NAME / "final (2).ipynb"
    )
    (course.submitted / "missing" / NAME).mkdir(parents=True)
    (hand_in(course, "linked", with_answer(json.loads(released), FULL)) / "x").symlink_to("../../../gradebook.db")
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        gradebook.add_student("absent")
        gradebook.add_assignment("05_fx_rewrite")
    yield course
    patch.undo()


@pytest.fixture(scope="module")
def graded(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Graded:
    report = tmp_path_factory.mktemp("report")
    return grade_course(course, [NAME], engine=LocalEngine(FakeSandbox(), 2), report=report)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where each copy of the course lies: the address of its gradebook is one, so its statements stay compiled."""
    return tmp_path_factory.mktemp("copy") / "work"


@pytest.fixture
def only(
    course: Course, graded: Graded, place: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Course]]:
    """Copy the graded course as it would be if only these students had handed in."""

    def copied(*students: str) -> Course:
        def others(folder: str, names: Iterable[str]) -> set[str]:
            return set(names) - set(students) if Path(folder) == course.submitted else set()

        shutil.copytree(course.journal.parent, place, symlinks=True, ignore=others)
        monkeypatch.setenv("COURSE_WORK", str(place))
        return open_course()

    yield copied
    shutil.rmtree(place)


def grade_again(course: Course) -> Graded:
    report = course.journal.parent / "report"
    return grade_course(course, [NAME], engine=LocalEngine(FakeSandbox()), report=report)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def marks(graded: Graded) -> dict[str, float]:
    with graded.csv.open() as file:
        return {row["student_id"]: float(row["score"] or "nan") for row in csv.DictReader(file)}


def test_students_get_the_map_of_the_lessons_with_the_release(course: Course) -> None:
    assert (course.release / "README.md").read_text() == (course.source / "README.md").read_text()


def test_one_bad_notebook_stops_nobody_elses(graded: Graded, marks: dict[str, float]) -> None:
    assert marks["honest"] == 6.0
    assert marks["untouched"] == 0.0
    assert len(graded.failures) == 1


@pytest.mark.parametrize("student", [*CHANGES, "check_deleted", "renamed", "linked", "half"])
def test_a_broken_notebook_with_a_right_answer_gets_its_marks(marks: dict[str, float], student: str) -> None:
    assert marks[student] == 6.0


@pytest.mark.parametrize("student", [*WORTHLESS, *FILES, "missing", "forged_output"])
def test_what_holds_no_answer_gets_zero_and_stands_in_the_csv(marks: dict[str, float], student: str) -> None:
    assert marks[student] == 0.0


@pytest.mark.parametrize("student", [*FILES, "missing"])
def test_what_cannot_be_read_stands_in_report_and_feedback_with_a_reason(course, graded, student: str) -> None:
    decide = [line.strip() for line in graded.text.splitlines() if "[decide]" in line]
    (entry,) = [line for line in decide if student in line.partition(" · ")[0].replace(",", "").split()]
    assert f"{NAME}.ipynb" in entry
    feedback = (course.feedback / student / NAME / f"{NAME}.html").read_text()
    assert "graded as an empty notebook" in feedback
    begin = feedback.split("</header>")[0]
    assert "points, 0 %" in begin
    assert 'href="#04_read_a_graph_check"' in begin


def test_the_file_stays_as_it_was_handed_in(course: Course, graded: Graded) -> None:
    for name, content in FILES.items():
        handed = (course.submitted / name / NAME / f"{NAME}.ipynb").read_bytes()
        assert handed == content.encode()


def test_our_own_failure_costs_nothing_and_stays_open(course: Course, graded: Graded) -> None:
    assert graded.failures == ("04_fx_capture of ours: Not graded, for no fault of the student: no sandbox",)
    (row,) = [line for line in graded.csv.read_text().splitlines() if ",ours," in line]
    assert row.split(",")[7:10] == ["", "", ""]  # raw_score, late_submission_penalty, score: none, not 0
    (submission,) = [s for s in course.api.get_submissions(NAME) if s["student"] == "ours"]
    assert not submission["autograded"]
    assert "ours" not in {r.student for r in records_in(course.journal)}


def test_no_script_of_a_student_reaches_what_people_open(course: Course, graded: Graded) -> None:
    for path in (
        course.autograded / "script" / NAME / f"{NAME}.ipynb",
        course.feedback / "script" / NAME / f"{NAME}.html",
    ):
        text = path.read_text()
        assert "<img src=x" not in text
        assert "alert(2)</script>" not in text


def test_a_link_brings_nothing_into_the_feedback(course: Course, graded: Graded) -> None:
    for folder in (course.autograded, course.feedback):
        assert [
            p.name for p in (folder / "linked" / NAME).iterdir() if "ipynb" not in p.name and "html" not in p.name
        ] == []


def test_who_handed_in_nothing_stands_in_report_and_csv(graded: Graded, marks: dict[str, float]) -> None:
    assert "handed in nothing: absent\n" in graded.text
    assert marks["absent"] == 0.0


def test_an_assignment_that_nobody_handed_in_is_no_column_of_zeros(graded: Graded) -> None:
    assert "05_fx_rewrite" not in graded.csv.read_text()


def test_formgrader_shows_who_needs_a_person(course: Course, graded: Graded) -> None:
    shown = {s["student"]: s for s in course.api.get_submissions(NAME)}
    with gradebook_of(course) as gradebook:
        flagged = {s.student.id for s in gradebook.assignment_submissions(NAME) if s.notebooks[0].flagged}
    assert {student for student, s in shown.items() if s["needs_manual_grade"]} == {*FILES, "missing"}
    assert {"renamed", "duplicated", *FILES} <= flagged
    assert not {"honest", "untouched"} & flagged


def gradebook_of(course: Course) -> Gradebook:
    return Gradebook(course.api.coursedir.db_url, "fusion-course")


def test_what_a_person_decided_stays_and_reaches_the_feedback(only: Callable[..., Course]) -> None:
    course = only("cut_off", "script", "honest")
    with gradebook_of(course) as gradebook:
        for student in ("cut_off", "script"):
            for grade in gradebook.find_submission_notebook(NAME, NAME, student).grades:
                grade.needs_manual_grade = False
            gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, student).manual_score = 2.5
        gradebook.find_comment(ANSWER, NAME, NAME, "script").manual_comment = "Shown in my office."
        gradebook.db.commit()
    before = (course.feedback / "honest" / NAME / f"{NAME}.html").stat().st_mtime_ns

    grade_again(course)

    shown = {s["student"]: s for s in course.api.get_submissions(NAME)}
    assert (shown["cut_off"]["score"], shown["cut_off"]["needs_manual_grade"]) == (2.5, False)
    assert "Shown in my office." in (course.feedback / "script" / NAME / f"{NAME}.html").read_text()
    assert (course.feedback / "honest" / NAME / f"{NAME}.html").stat().st_mtime_ns == before


def hand_in_late(course: Course, student: str) -> None:
    """Have the student handed in an hour after a due date that is set now."""
    (course.submitted / student / NAME / "timestamp.txt").write_text("2026-01-15 12:00:00 UTC")
    with gradebook_of(course) as gradebook:
        gradebook.update_or_create_assignment(NAME, duedate="2026-01-15 11:00:00 UTC")


def test_a_later_due_date_is_reckoned_with_at_once(only: Callable[..., Course]) -> None:
    course = only("honest")
    hand_in_late(course, "honest")
    grade_again(course)
    with gradebook_of(course) as gradebook:
        assert gradebook.find_submission(NAME, "honest").total_seconds_late == 3600


def test_lateness_is_taken_off_what_a_person_decided_too(only: Callable[..., Course]) -> None:
    course = only("check_deleted")
    hand_in_late(course, "check_deleted")
    course = with_settings(course, "late = {days = 2, percent_per_day = 50}")
    penalties = []
    for decided in (None, 4.0):
        with gradebook_of(course) as gradebook:
            grade = gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, "check_deleted")
            grade.manual_score = decided
            gradebook.db.commit()
        grade_again(course)
        with gradebook_of(course) as gradebook:
            penalties.append(gradebook.find_submission(NAME, "check_deleted").late_submission_penalty)
    assert penalties == [3.0, 2.0]


def test_repairs_are_noted_in_the_records(graded: Graded) -> None:
    notes = {r.student: " ".join(r.notes) for r in graded.records}
    assert "split or copied" in notes["duplicated"]
    assert "schema_version" in notes["no_schema"]
    assert "put back" in notes["check_deleted"]
    assert "final (2).ipynb" in notes["renamed"]
    assert notes["honest"] == ""


def test_formgraders_button_takes_the_record_from_the_journal(course: Course, graded: Graded, monkeypatch) -> None:
    monkeypatch.setattr("autograder.classroom.hand_in.grade_answers", None)
    assert "Autograding" in course.do("autograde", NAME, "honest")


def test_formgraders_button_grades_what_nobody_graded_yet(course: Course, graded: Graded) -> None:
    released = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text())
    hand_in(course, "late", with_answer(released, FULL))
    course.do("autograde", NAME, "late")
    (submission,) = [s for s in course.api.get_submissions(NAME) if s["student"] == "late"]
    assert submission["score"] == 6.0
    assert "late" in {r.student for r in records_in(course.journal)}


def test_grading_again_takes_everything_from_the_journal(only: Callable[..., Course]) -> None:
    again = grade_again(only("honest", "renamed", "cut_off", "half", "ours"))
    assert (len(again.records), again.from_journal, len(again.failures), again.marked) == (5, 4, 1, 4)


def test_formgraders_button_reads_a_hand_in_once(course: Course, graded: Graded, monkeypatch) -> None:
    read = []
    monkeypatch.setattr("autograder.classroom.hand_in.read_bytes", lambda path: read.append(path) or read_bytes(path))
    released = json.loads((course.release / NAME / f"{NAME}.ipynb").read_text())
    folder = hand_in(course, "once", with_answer(released, FULL))
    course.do("autograde", NAME, "once")
    assert read == [folder / f"{NAME}.ipynb"]
    course.do("autograde", NAME, "honest")
    assert len(read) == 2


def test_an_older_exercise_is_named_and_nothing_is_graded_again_in_silence(only, monkeypatch) -> None:
    course = only("honest", "untouched")
    assert "regrade" not in grade_again(course).text
    changed = {**version_of(ANSWER), "exercise": "another"}
    monkeypatch.setattr(exercise_versions, "version_of", lambda name: changed if name == ANSWER else version_of(name))
    monkeypatch.setattr("autograder.classroom.hand_in.grade_answers", None)
    again = grade_again(course)
    assert again.from_journal == 2
    assert f"2 records are of an older {ANSWER}: `autograder regrade {ANSWER}` shows what would change." in again.text


def test_marks_against_other_points_keep_their_share_and_say_so(only: Callable[..., Course]) -> None:
    course = only("honest")
    with gradebook_of(course) as gradebook:  # as a release with other points does
        gradebook.find_grade_cell(f"{ANSWER}_check", NAME, NAME).max_score = 12.0
        cell = released_cells(gradebook.find_notebook(NAME, NAME))[f"{ANSWER}_check"]
        node = from_dict({"source": cell.source, "cell_type": "code", "metadata": {"nbgrader": cell.metadata}})
        gradebook.find_source_cell(f"{ANSWER}_check", NAME, NAME).checksum = compute_checksum(node)
        gradebook.db.commit()
    again = grade_again(course)
    assert (again.failures, "grading metadata" in again.text) == ((), False)
    with gradebook_of(course) as gradebook:
        assert gradebook.find_grade(f"{ANSWER}_check", NAME, NAME, "honest").auto_score == 12.0
    page = (course.feedback / "honest" / NAME / f"{NAME}.html").read_text()
    assert "It was worth 6 points when this was graded" in page
