"""A class's roster: our own columns, and the lists that Canvas and Moodle export."""

from pathlib import Path

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.roster import RosterError, import_roster, read_roster

NAME = "05_fx_rewrite"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name\nada\n", "has the column 'name'"),
        ("email\na@x\n", "has no column id"),
        ("id\nada\nada\n", "names 'ada' twice"),
        ("id\n../evil\n", "Line 2"),
        ("id,email\nada,a,b\n", "more cells than the first line"),
        ("id\n", "has no student"),
        (
            "Identifier,Status,Grade\nParticipant 7,,\n",
            "has the column 'Identifier'.*or it is a list that Canvas or Moodle",
        ),
        (
            "Identifier,Full name,Email address\nParticipant 7,Ana,\n",
            "Line 2.*has neither a login nor an e-mail address",
        ),
        ("id,email\nada," + "x" * 200 + "\n", "more than 128 characters"),
    ],
)
def test_a_roster_that_cannot_be_meant_is_refused_in_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "r.csv").write_text(text)
    with pytest.raises(RosterError, match=words):
        read_roster(tmp_path / "r.csv")


def test_a_roster_out_of_a_spreadsheet_is_read(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_bytes("\ufeffid,first_name\r\nada,Ada\r\n".encode())
    assert read_roster(tmp_path / "r.csv") == ({"ada": {"first_name": "Ada"}}, False)


CANVAS_HEAD = "Student,ID,SIS User ID,SIS Login ID,Section,Start here (4711),Current Score"
WORKSHEET_HEAD = 'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (submission)"'
CANVAS_LINES = (
    ",,,,,Manual Posting,\n"
    "    Points Possible,,,,,10.00,(read only)\n"
    '"Ruiz, Ana Maria",1001,S77,aruiz,"CS 1, A",,0.00\n'
    '"O\'Neil, Bo",1005,S78,bo@example.org,"CS 1, A",EX,\n'
    '"Student, Test",1009,,d41d8cd98f00b204e9800998ecf8427e12345678,"CS 1, A",,\n'
)
BOTH = {
    "aruiz": {"first_name": "Ana Maria", "last_name": "Ruiz", "lms_user_id": "1001"},
    "bo@example.org": {"first_name": "Bo", "last_name": "O'Neil", "email": "bo@example.org", "lms_user_id": "1005"},
}
ADDRESS = "ana.ruiz@example.org"
EXPORTS = {
    "Canvas": (f"\ufeff{CANVAS_HEAD}\n{CANVAS_LINES}", BOTH),
    "Canvas, with semicolons": (
        CANVAS_HEAD.replace(",", ";") + "\n    Points Possible;;;;;10,00;\nRuiz, Ana Maria;1001;;aruiz;A;;\n",
        {"aruiz": BOTH["aruiz"]},
    ),
    "Canvas, with two columns for the name": (
        "LastName,FirstName,ID,SIS Login ID,Section\n    Points Possible,,,,\nRuiz,Ana Maria,1001,aruiz,A\n",
        {"aruiz": BOTH["aruiz"]},
    ),
    "Moodle's worksheet": (
        f'{WORKSHEET_HEAD},"Feedback comments"\nParticipant 77,"Ana Ruiz",{ADDRESS},Submitted,,10.00,-,"Two\nlines"\n',
        {ADDRESS: {"last_name": "Ana Ruiz", "email": ADDRESS}},
    ),
    "Moodle's participants": (
        f'\ufeff"First name","Last name","ID number","Email address",Groups\nAna,Ruiz,S77,{ADDRESS},"A, B"\n',
        {ADDRESS: {"first_name": "Ana", "last_name": "Ruiz", "email": ADDRESS}},
    ),
    "Moodle's grades": (
        f'"First name",Surname,Username,"Email address","Course total (Real)"\nAna,Ruiz,aruiz,{ADDRESS},-\n',
        {"aruiz": {"first_name": "Ana", "last_name": "Ruiz", "email": ADDRESS}},
    ),
}


@pytest.mark.parametrize("platform", EXPORTS)
def test_the_list_that_a_platform_exported_is_a_roster(tmp_path: Path, platform: str) -> None:
    text, expected = EXPORTS[platform]
    (tmp_path / "r.csv").write_text(text, encoding="utf-8")
    assert read_roster(tmp_path / "r.csv") == (expected, True)


def test_a_student_of_the_class_keeps_the_id(course: Course, tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("First name,Last name,Email address\nAda,Lo,A@x.org\nEve,E,eve@x.org\n")
    (tmp_path / "c.csv").write_text(f'{CANVAS_HEAD}\n"B, Bob",77,,bob.b,A,,\n')
    assert (import_roster(course, tmp_path / "m.csv"), import_roster(course, tmp_path / "c.csv")) == (2, 1)
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        found = {s.id: (s.first_name, s.last_name, s.lms_user_id) for s in gradebook.students}
    assert found.pop("cleo")
    assert found == {"ada": ("Ada", "Lo", "1234"), "bob": ("Bob", "B", "77"), "eve@x.org": ("Eve", "E", None)}


def test_a_student_without_a_name_is_called_by_the_id(course: Course) -> None:
    with Gradebook(course.api.coursedir.db_url, "fusion-course") as gradebook:
        names = {s.id: (s.last_name, s.first_name) for s in gradebook.students}
    assert names == {"ada": ("L", "Ada"), "bob": ("bob", ""), "cleo": ("cleo", "")}
