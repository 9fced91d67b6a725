"""Moodle's grading worksheet: its columns as Moodle writes them, and a copy in which only grades differ."""

import pytest

from autograder.classroom.platforms.moodle_worksheet import Participant, Worksheet, WorksheetError

HEAD = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"'
)
ANA = (
    'Participant 1005,"Ana Maria Ruiz",aruiz@example.org,"Submitted for grading - 3 mins 31 secs late",,100.00,Yes,'
    '"Thursday, 15 January 2026, 11:33 AM",-,'
)
BO = (
    'Participant 1001,"Bo ""the"" O\'Neil",bo@example.org,"Submitted for grading",50.00,100.00,Yes,'
    '"Thursday, 15 January 2026, 11:00 AM",-,"<p>Two lines,\nand a ""quotation"".</p>"'
)
EVE = 'Participant 77,Éve,eve@example.org,"No submission",,100.00,Yes,-,-,""'
SHEET = "\r\n".join(["\ufeff" + HEAD, ANA, BO, EVE, ""]).encode()
BLIND_HEAD = 'Identifier,Status,Grade,"Maximum Grade","Grade can be changed","Last modified (grade)"'
BLIND = f"{BLIND_HEAD}\nParticipant 9,Submitted,,5.00,Yes,-\nParticipant 8,Submitted,,5.00,Yes,-".encode()


def test_each_participant_is_read_with_name_address_and_time() -> None:
    people = Worksheet(SHEET, "Grades.csv").participants
    when = "Thursday, 15 January 2026, 11:33 AM"
    assert people["1005"] == Participant("1005", "Ana Maria Ruiz", "aruiz@example.org", when)
    assert people["1001"].name == 'Bo "the" O\'Neil'
    assert (people["77"].name, people["77"].submitted) == ("Éve", "-")
    assert not any(person.is_blind for person in people.values())


def test_with_blind_marking_there_are_numbers_only() -> None:
    people = Worksheet(BLIND, "Grades.csv").participants
    assert list(people) == ["9", "8"]
    assert all(person.is_blind for person in people.values())


def test_grades_are_the_only_bytes_that_change() -> None:
    filled = Worksheet(SHEET, "Grades.csv").filled({"1005": "87.5", "1001": "60", "4711": "3"})
    expected = SHEET.replace(b'late",,100.00', b'late",87.5,100.00').replace(b"50.00,100.00", b"60,100.00")
    assert filled == expected
    assert Worksheet(SHEET, "Grades.csv").filled({}) == SHEET
    assert Worksheet(BLIND, "Grades.csv").filled({"8": "4.5"}) == BLIND.replace(b"8,Submitted,,", b"8,Submitted,4.5,")


@pytest.mark.parametrize("quoted", [HEAD.replace("Identifier", '"Identifier"'), HEAD.upper()])
def test_the_head_is_found_however_it_is_quoted(quoted: str) -> None:
    assert list(Worksheet(f"\ufeff{quoted}\n{ANA}".encode(), "Grades.csv").participants) == ["1005"]


def test_the_maximum_is_one_number() -> None:
    assert Worksheet(SHEET, "Grades.csv").maximum() == 100.0
    assert Worksheet(SHEET.replace(b"100.00", b'"100,00"'), "Grades.csv").maximum() == 100.0
    with pytest.raises(WorksheetError, match="has no maximum grade; let Moodle grade it by points"):
        Worksheet(SHEET.replace(b"Maximum Grade", b"Scale"), "Grades.csv").maximum()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "has no column Identifier"),
        (
            b"ID,Status,Bewertung\nTeilnehmer/in1,,",
            "has no column Identifier; download it again, with Moodle's",
        ),
        (SHEET.replace(b",Grade,", b",Note,"), "has no column Grade"),
        (SHEET.replace(b",", b";"), "Line 1 of Grades.csv is not as Moodle writes it, with commas between"),
        (SHEET.replace(b"Participant 77", b"Participant 1001"), "names a participant twice"),
        (SHEET + b"Participant 78,Ben", "Line 5 of Grades.csv is not complete"),
        (SHEET.replace(b"Participant 77", b"Participant"), "Line 4 of Grades.csv is not complete"),
        (SHEET + b'Participant 78,"Ben', "Line 5 of Grades.csv is not as Moodle writes it"),
        (HEAD.encode() + b"\nParticipant 1,\xe9", "is not text in UTF-8"),
    ],
)
def test_a_file_that_is_no_worksheet_is_refused_in_one_sentence(content: bytes, words: str) -> None:
    with pytest.raises(WorksheetError, match=words):
        Worksheet(content, "Grades.csv")
