"""Marks for spreadsheets, Canvas and Moodle, and what lateness takes from them."""

import csv
import re
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.export import CanvasExport, MarksExport
from autograder.classroom.platforms.moodle_marks import write_worksheets
from autograder.classroom.report import checks_csv, summarise
from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)

NAME = "05_fx_rewrite"

MOODLE = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (submission)"\r\n'
    'Participant 77,"Ada L",A@x.org,Submitted,,10.00,"Thursday, 15 January 2026, 11:30 AM"\r\n'
    "Participant 1234,Bob,,Submitted,,10.00,-\r\n"
)


def test_points_go_back_into_moodles_worksheet(course: Course, tmp_path: Path) -> None:
    downloaded = tmp_path / "work" / "downloaded" / NAME / "archive"
    downloaded.mkdir(parents=True)
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        gradebook.add_assignment(NAME)
        gradebook.add_notebook(NAME, NAME)
        gradebook.add_grade_cell("one", NAME, NAME, max_score=5.0, cell_type="code")
        for student, points in {"ada": 0.38, "Participant_9": 5.0}.items():
            gradebook.update_or_create_student(student)
            gradebook.add_submission(NAME, student)
            gradebook.find_grade("one", NAME, NAME, student).auto_score = points
        gradebook.db.commit()
    (downloaded / "Grades.csv").write_bytes(MOODLE.encode())
    blind = "Identifier,Status,Grade,Maximum Grade\nParticipant 8,,,5\nParticipant 9,,,5"
    (downloaded / "blind.csv").write_text(blind)
    (downloaded / "other.csv").write_text("Name\n")
    said = list(write_worksheets(course, [NAME]))
    made = tmp_path / "work" / "moodle" / NAME
    assert (made / "Grades.csv").read_bytes().decode() == MOODLE.replace(
        'Submitted,,10.00,"T', 'Submitted,0.76,10.00,"T'
    )
    assert (made / "blind.csv").read_text() == blind.replace("9,,,5", "9,,5,5")
    assert len(list(made.iterdir())) == 2
    assert said[0].endswith("Grades.csv, 1 of 2 participants have a mark")
    assert said[2].startswith("moodle     no grades were written: other.csv has no column Identifier")


def test_no_file_of_marks_shows_the_end_of_a_binary_fraction(course: Course, tmp_path: Path, log) -> None:
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        gradebook.add_assignment(NAME)
        gradebook.add_notebook(NAME, NAME)
        gradebook.add_submission(NAME, "ada")
        for cell, points in {"one": 0.1, "two": 0.2}.items():  # 0.30000000000000004 together
            gradebook.add_grade_cell(cell, NAME, NAME, max_score=points, cell_type="code")
            gradebook.update_or_create_submission(NAME, "bob")
        gradebook.db.commit()
        gradebook.add_submission(NAME, "cleo")
        for cell, points in {"one": 0.1, "two": 0.2}.items():
            gradebook.find_grade(cell, NAME, NAME, "cleo").auto_score = points
        gradebook.db.commit()
        MarksExport(assignment=[NAME], to=str(tmp_path / "grades.csv")).export(gradebook)
        gradebook.update_or_create_student("cleo", lms_user_id="9")
        plugin = CanvasExport(log=log)
        plugin.to = str(tmp_path / "canvas.csv")
        plugin.export(gradebook)
    for name in ("grades.csv", "canvas.csv"):
        assert re.findall(r"0\.30*[^3,\r\n]\d*|\d\.\d{5,}", (tmp_path / name).read_text()) == [], name
    assert ",0.3,0.0,0.3,0.3" in (tmp_path / "grades.csv").read_text()


def test_canvas_gets_a_row_for_each_student_that_it_knows(course: Course, tmp_path: Path, log, caplog) -> None:
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        gradebook.update_or_create_student("eve", first_name="=1+1", lms_user_id="5")
        gradebook.add_assignment(NAME)
        gradebook.add_submission(NAME, "ada")
        plugin = CanvasExport(log=log)
        plugin.to = str(tmp_path / "canvas.csv")
        plugin.export(gradebook)
    with (tmp_path / "canvas.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", NAME]
    assert rows[1][0] == "    Points Possible"
    assert [row[:2] + row[3:4] + row[5:] for row in rows[2:]] == [
        ["L, Ada", "1234", "ada", "0"],
        ["bob", "77", "bob", ""],
        ["'=1+1", "5", "eve", ""],
    ]
    assert "cleo has no lms_user_id" in caplog.text


def test_a_name_with_a_comma_or_a_formula_moves_no_mark(course: Course, tmp_path: Path) -> None:
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        gradebook.update_or_create_student("eve", first_name="=1+1", last_name="of here, there")
        gradebook.add_assignment(NAME)
        gradebook.add_submission(NAME, "ada")
        MarksExport(assignment=[NAME], to=str(tmp_path / "grades.csv")).export(gradebook)
    with (tmp_path / "grades.csv").open(newline="") as file:
        rows = {row["student_id"]: row for row in csv.DictReader(file)}
    assert set(rows) == {"ada", "bob", "cleo", "eve"}
    assert (rows["eve"]["last_name"], rows["eve"]["first_name"]) == ("of here, there", "'=1+1")
    assert {row["score"] for row in rows.values()} == {"0.0"}


def test_the_table_of_checks_shows_no_end_of_a_binary_fraction() -> None:
    check = CheckRecord("sum", "values", False, CheckStatus.FAILED, 0.1 + 0.2, 0.7 + 0.1)
    exercise = ExerciseRecord("00_doctor", "value", 0.3, 0.8, ExerciseStatus.GRADED, checks=(check,))
    record = SubmissionRecord("00_start_here", "ada", "0" * 64, SandboxRecord(1), (exercise,))
    (row,) = csv.DictReader(checks_csv(summarise([record])).splitlines())
    assert (row["points"], row["max_points"]) == ("0.3", "0.8")
