"""Whose a file in a platform's archive is: names as the platforms write them, and students who try to be others."""

from zoneinfo import ZoneInfo

import pytest

from autograder.classroom.platforms.moodle_worksheet import Participant
from autograder.classroom.platforms.roster_lookup import Listed, Roster
from autograder.classroom.platforms.upload_owners import Enclosed, collected

NAME = "00_start_here"
FILE = f"{NAME}.ipynb"
ANA, BO, CRUZ = "aruiz", "boneil", "cruz"
ROSTER = Roster(
    [
        Listed(ANA, "Ana Maria", "Ruiz", "aruiz@example.org", "1001"),
        Listed(BO, "Bo", "O'Neil", "bo@example.org", "1005"),
        Listed(CRUZ, "José", "de la Cruz", "jose@example.org", "1007"),
    ]
)
BY_NAME = Roster(Listed(each.id, each.first_name, each.last_name) for each in ROSTER.students.values())

LAYOUTS = {
    "Canvas": {
        f"ruizanamaria_1001_9001_{FILE}": ANA,
        f"oneilbo_LATE_1005_9002_{NAME}-1.ipynb": BO,
        f"de_la_cruzjosé_1007_9003_{FILE}": CRUZ,
    },
    "Moodle": {  # its numbers are of one assignment: each is here what another student has in the roster
        f"Ana Maria Ruiz_1005_assignsubmission_file_/{FILE}": ANA,
        f"Bo O'Neil_1007_assignsubmission_file_/homework/{FILE}": BO,
        f"José de la Cruz_1001_assignsubmission_file_/homework/a/{FILE}": CRUZ,
    },
    "Moodle, last name first": {
        f"Ruiz, Ana Maria_1005_assignsubmission_file_/{FILE}": ANA,
        f"O'Neil, Bo_1001_assignsubmission_file_/{FILE}": BO,
    },
    "Moodle, without folders": {
        f"Ana Maria Ruiz_1005_assignsubmission_file_{FILE}": ANA,
        f"Bo O'Neil_1001_assignsubmission_file_{FILE}": BO,
    },
    "Moodle, in a folder": {f"CS-1/Bo O'Neil_1001_assignsubmission_file_/{FILE}": BO},
    "Blackboard": {
        f"00 Start_here_aruiz_attempt_2026-01-15-11-30-00_{FILE}": ANA,
        f"00 Start_here_boneil_attempt_2026-01-15-12-00-59_{FILE}": BO,
    },
    "Brightspace": {
        f"1001-4711 - Ana Maria Ruiz - Jan 15, 2026 1130 AM/{FILE}": ANA,
        f"1005-4711 - Bo O'Neil - 15 January 2026 1200/{FILE}": BO,
    },
    "Brightspace, without folders": {
        f"5501-4711 - Ana Maria Ruiz- Jan 15, 2026 1130 AM - {FILE}": ANA,
        f"5502-4711 - Bo O'Neil- Jan 15, 2026 1200 PM - {FILE}": BO,
    },
    "Sakai": {
        f"Start here/Ruiz, Ana Maria(aruiz)/Submission attachment(s)/{FILE}": ANA,
        f"Start here/O'Neil, Bo(boneil)/Submission attachment(s)/{FILE}": BO,
    },
    "Sakai, without folders": {f"Ruiz, Ana Maria(aruiz)_Submission attachment(s)_{FILE}": ANA},
    "Teams": {
        f"Submitted files/Ana Maria Ruiz/Start here/Version 1/{FILE}": ANA,
        f"Submitted files/Bo O'Neil/Start here/Versión 1/{FILE}": BO,
    },
    "OpenOlat": {
        f"Ruiz_Ana_Maria_aruiz/1_submissions/{FILE}": ANA,
        f"O_Neil_Bo_boneil/1_submissions/{FILE}": BO,
    },
    "Google Classroom": {f"Ana Maria Ruiz - {FILE}": ANA, f"Start here/Bo O'Neil - {FILE}".split("/")[1]: BO},
    "Gradescope": {
        f"assignment_77_export/submission_9001/{FILE}": ANA,
        f"assignment_77_export/submission_9002/work/{FILE}": BO,
    },
    "folders by id": {f"aruiz/{FILE}": ANA, f"boneil/notebooks/{FILE}": BO},
    "folders by name": {f"Ruiz, Ana Maria/{FILE}": ANA, f"Bo O'Neil/notebooks/{FILE}": BO},
}
GRADESCOPE = Enclosed(
    {
        "assignment_77_export/submission_9001": [{"name": "Ana Maria Ruiz", "sid": "1001", "email": ""}],
        "assignment_77_export/submission_9002": [{"name": "B. O'Neil", "sid": "", "email": "bo@example.org"}],
        "assignment_77_export/submission_9003": [{"name": "Ana Maria Ruiz"}, {"name": "Bo O'Neil"}],
    }
)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_students_of_each_platform_are_found_in_the_roster(layout: str) -> None:
    expected = LAYOUTS[layout]
    found = collected([*expected, "grades.csv", "index.html"], ROSTER, GRADESCOPE)
    assert {path: student for path, (student, _) in found.students.items()} == expected
    assert {file for _, file in found.students.values()} == {FILE}
    assert found.left_out == {}


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name not in ("Canvas", "Gradescope")])
def test_a_roster_without_the_platforms_numbers_finds_them_by_name_or_login(layout: str) -> None:
    found = collected(LAYOUTS[layout], BY_NAME)
    assert {path: student for path, (student, _) in found.students.items()} == LAYOUTS[layout]


def test_canvas_writes_a_name_without_blanks_and_marks() -> None:
    paths = [path for path in LAYOUTS["Canvas"] if not path.startswith("de_la")]
    assert {student for student, _ in collected(paths, BY_NAME).students.values()} == {ANA, BO}


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if not name.startswith(("Google", "folders by name"))])
def test_without_a_roster_two_students_stay_two(layout: str) -> None:
    expected = LAYOUTS[layout]
    if layout == "folders by id":
        expected = {path: student for path, student in expected.items() if path.count("/") == 1}
    found = collected(expected, Roster(), GRADESCOPE)
    assert set(found.students) == set(expected)
    assert len({student for student, _ in found.students.values()}) == len(expected)


@pytest.mark.parametrize("roster", [Roster(), ROSTER])
@pytest.mark.parametrize("folder", ["Participant", "Teilnehmerin", "Group A-Participant"])
def test_blind_marking_keeps_the_number(roster: Roster, folder: str) -> None:
    paths = [f"{folder}_{number}_assignsubmission_file_/{FILE}" for number in (1001, 2002)]  # one is Ana's, by chance
    worksheet = Enclosed(participants={number: Participant(number) for number in ("1001", "2002", "3003")})
    found = collected(paths, roster, worksheet)
    assert [student for student, _ in found.students.values()] == ["Participant_1001", "Participant_2002"]
    if folder == "Participant":
        assert collected(paths, roster).students == found.students
    elif roster:
        assert set(collected(paths, roster).left_out) == set(paths)


def test_canvas_hides_names_too() -> None:
    found = collected([f"anon_Ab3xY_9001_{FILE}", f"LATE_anon_Zz9_9002_{FILE}"], ROSTER)
    assert [student for student, _ in found.students.values()] == ["anon_Zz9", "anon_Ab3xY"]


WORKSHEET = Enclosed(
    participants={
        "1005": Participant("1005", "Ana Maria Ruiz", "aruiz@example.org"),
        "1001": Participant("1001", "Bo O'Neil", "bo@example.org"),
        "2001": Participant("2001", "Ana Maria Ruiz", "other@example.org"),
    }
)
MOODLE = "assignsubmission_file_"


def test_the_worksheet_of_an_assignment_says_whose_a_number_is() -> None:
    paths = [f"Ana Maria Ruiz_1005_{MOODLE}/{FILE}", f"Group A-Bo ONeil_1001_{MOODLE}/{FILE}"]
    found = collected(paths, ROSTER, WORKSHEET)
    assert found.students == {paths[0]: (ANA, FILE), paths[1]: (BO, FILE)}
    assert found.left_out == {}


def test_two_students_of_one_name_are_told_apart_by_their_addresses() -> None:
    both = [
        Listed("ana1", "Ana Maria", "Ruiz", "ARuiz@example.org"),
        Listed("ana2", "Ana Maria", "Ruiz", "other@example.org"),
    ]
    paths = [f"Ana Maria Ruiz_{number}_{MOODLE}/{FILE}" for number in (1005, 2001)]
    found = collected(paths, Roster(both), WORKSHEET)
    assert [student for student, _ in found.students.values()] == ["ana1", "ana2"]
    without = collected(paths, Roster(both))
    assert (without.students, set(without.left_out)) == ({}, set(paths))
    assert all("put the assignment's grading worksheet next to the archive" in why for why in without.left_out.values())


@pytest.mark.parametrize(
    ("name", "number", "why"),
    [
        ("Ana Maria Ruiz", 2001, "'Ana Maria Ruiz' <other@example.org> is not in the roster"),
        ("Ana Maria Ruiz", 7007, "the worksheet has no participant 7007; is it of another assignment?"),
        ("Ana Maria Ruiz", 1001, 'the worksheet calls participant 1001 "Bo O\'Neil"'),
    ],
)
def test_a_number_that_fits_no_student_is_left_for_a_person_to_decide(name: str, number: int, why: str) -> None:
    path = f"{name}_{number}_{MOODLE}/{FILE}"
    found = collected([path], ROSTER, WORKSHEET)
    assert (found.students, found.left_out) == ({}, {path: why})


@pytest.mark.parametrize("number", ["1001", "77", "5"])  # Ana's on the platform, an id, and of no student
def test_a_hand_in_in_moodle_makes_up_no_student(number: str) -> None:
    path = f"Eve Unknown_{number}_{MOODLE}/{FILE}"
    found = collected([path], Roster([*ROSTER.students.values(), Listed("77")]))
    assert found.students == {}
    assert found.left_out[path].startswith("'Eve Unknown' is not in the roster; put the assignment's grading worksheet")


@pytest.mark.parametrize("path", [f"eve_1001_9_{FILE}", f"1001-4711 - Eve - Jan 15, 2026 1130 AM/{FILE}"])
def test_a_platforms_number_is_not_looked_up_among_ids(path: str) -> None:
    found = collected([path], Roster([Listed("1001", "Ana", "Ruiz"), Listed("bo", lms_user_id="77")]))
    assert (found.students, list(found.left_out)) == ({}, [path])


def test_canvas_numbers_tell_two_students_of_one_name_apart() -> None:
    roster = Roster([Listed("ana1", "Ana", "Ruiz", lms_user_id="1"), Listed("ana2", "Ana", "Ruiz", lms_user_id="2")])
    paths = [f"ruizana_{number}_9_{FILE}" for number in (1, 2, 3)]
    found = collected(paths, roster)
    assert [student for student, _ in found.students.values()] == ["ana1", "ana2"]
    assert found.left_out == {paths[2]: "'ruizana' (3) is not in the roster"}
    by_name = collected([f"Ana Ruiz/{FILE}"], roster)
    assert by_name.students == {}
    assert list(by_name.left_out) == [f"Ana Ruiz/{FILE}"]


TIMES = {
    f"ruizanamaria_1001_9001_{FILE}": None,
    f"oneilbo_LATE_1005_9002_{FILE}": None,
    f"X_aruiz_attempt_2026-01-15-11-30-00_{FILE}": "2026-01-15 10:30",
    f"1001-4711 - Ana Maria Ruiz - Jan 15, 2026 1130 AM/{FILE}": "2026-01-15 10:30",
    f"Ana Maria Ruiz_1005_{MOODLE}/{FILE}": "2026-01-15 10:31",
    f"Ruiz, Ana Maria(aruiz)/Submission attachment(s)/{FILE}": "2026-01-15 10:32",
    f"submission_9001/{FILE}": "2026-01-15 10:33",
    f"aruiz/Start here/Version 1/{FILE}": None,
    f"Ruiz_Ana_aruiz/1_submissions/{FILE}": None,
}


@pytest.mark.parametrize("path", TIMES)
def test_a_hand_in_has_the_time_that_the_platform_gives(path: str) -> None:
    enclosed = Enclosed(
        {"submission_9001": [{"sid": ANA}]},
        {"submission_9001": "2026-01-15 10:33:00.000000000 Z"},
        {path.rsplit("/", 1)[0]: "2026-01-15T09:00:00Z", "Ruiz, Ana Maria(aruiz)": "2026-01-15T10:32:00Z"},
        {"1005": Participant("1005", "Ana Maria Ruiz", submitted="Thursday, 15 January 2026, 11:31 AM")},
        ZoneInfo("Europe/Berlin"),
    )
    found = collected([path], ROSTER, enclosed)
    assert list(found.students) == [path]
    assert [f"{when:%Y-%m-%d %H:%M}" for when in found.times.values()] == [text for text in [TIMES[path]] if text]
    assert found.late == [path for name in ["LATE"] if name in path]


def test_what_a_teacher_gave_in_openolat_is_no_hand_in() -> None:
    folders = ("1_task", "2_submissions", "3_corrections", "4_revisions_1", "5_corrections_1", "6_assessment")
    theirs = [f"Ruiz_Ana_Maria_aruiz/{folder}/{FILE}" for folder in folders]
    found = collected([*theirs, f"O_Neil_Bo_boneil/1_task/{FILE}"], ROSTER)
    assert (found.students, found.older, found.left_out) == ({theirs[3]: (ANA, FILE)}, [theirs[1]], {})
    elsewhere = [f"aruiz/1_task/{FILE}", f"Eve/1_task/{FILE}"]  # a folder that a student made
    found = collected(elsewhere, ROSTER)
    assert (list(found.students), list(found.left_out)) == (elsewhere[:1], elsewhere[1:])


def test_working_files_in_teams_are_not_handed_in() -> None:
    handed_in = f"Student Work/Submitted files/Ana Maria Ruiz/Start here/Version 2/{FILE}"
    working = [f"Student Work/Working files/{name}/Start here/{FILE}" for name in ("Ana Maria Ruiz", "Bo O'Neil")]
    found = collected([handed_in, *working], ROSTER)
    assert found.students == {handed_in: (ANA, FILE)}
    assert found.left_out == {}
    alike = [f"boneil/x/Version 1/{FILE}", f"aruiz/{FILE}", f"cruz/notebooks/{FILE}"]  # a student's own folders
    assert [student for student, _ in collected(alike, ROSTER).students.values()] == [ANA, BO, CRUZ]


def test_a_time_that_cannot_be_read_is_told() -> None:
    said = Participant("1005", "Ana Maria Ruiz", submitted="Donnerstag, 15. Januar 2026, 11:31")
    found = collected([f"Ana Maria Ruiz_1005_{MOODLE}/{FILE}"], ROSTER, Enclosed(participants={"1005": said}))
    assert (found.times, found.unread) == ({}, ["Donnerstag, 15. Januar 2026, 11:31"])


@pytest.mark.parametrize(
    ("paths", "newest"),
    [
        ([f"a_1001_2_{FILE}", f"a_1001_9_{NAME}-2.ipynb", f"a_1001_5_{NAME}-1.ipynb"], 1),
        ([f"X_aruiz_attempt_2026-0{month}-15-11-30-00_{FILE}" for month in (1, 3, 2)], 1),
        ([f"1001-1 - A- {when}/{FILE}" for when in ("Mar 2, 2026 1159 AM", "Mar 2, 2026 1201 PM")], 1),
        ([f"1001-1 - A- {when}/{FILE}" for when in ("Jan 9, 2026 100 AM", "Jan 10, 2026 1250 AM")], 1),
        ([f"aruiz/Start here/Version {number}/{FILE}" for number in (9, 10)], 1),
        ([f"Ruiz_Ana_aruiz/{step}/{FILE}" for step in ("4_revisions_1", "2_submissions")], 0),
    ],
)
def test_of_what_was_handed_in_again_the_newest_counts(paths: list[str], newest: int) -> None:
    found = collected(paths, ROSTER)
    assert found.students == {paths[newest]: (ANA, FILE)}
    assert sorted(found.older) == sorted(path for path in paths if path != paths[newest])
    assert found.left_out == {}


def test_a_second_notebook_of_this_name_in_a_folder_is_left_out_and_named() -> None:
    inner, outer = (f"Ana Maria Ruiz_1001_assignsubmission_file_/{folder}{FILE}" for folder in ("a copy/", ""))
    found = collected([inner, outer], ROSTER)
    assert found.students == {outer: (ANA, FILE)}
    assert found.left_out == {inner: "aruiz has another file of this name, which was taken"}


@pytest.mark.parametrize(
    "claimed",
    [
        f"ruizana_1001_5_{FILE}",
        f"Ana Ruiz_1001_assignsubmission_file_/{FILE}",
        f"Ruiz, Ana(aruiz)/{FILE}",
        f"Ana Maria Ruiz/x/Version 1/{FILE}",
        f"Ana Maria Ruiz - {FILE}",
        f"aruiz/{FILE}",
    ],
)
def test_nobody_becomes_another_student_by_the_names_in_the_own_hand_in(claimed: str) -> None:
    hers = {
        f"oneilbo_1005_7_{claimed.replace('/', '_')}": BO,
        f"Bo O'Neil_1005_assignsubmission_file_/{claimed}": BO,
        f"O'Neil, Bo(boneil)/Submission attachment(s)/{claimed}": BO,
        f"1005-4711 - Bo O'Neil - Jan 15, 2026 1130 AM/{claimed}": BO,
        f"boneil/{claimed}": BO,
    }
    for path, student in hers.items():
        found = collected([path], ROSTER)
        assert [owner for owner, _ in found.students.values()] == [student], path
    unlisted = f"mallory/{claimed}"  # in an archive whose folders are students
    found = collected([f"boneil/{FILE}", unlisted], ROSTER)
    assert found.students == {f"boneil/{FILE}": (BO, FILE)}
    assert found.left_out == {unlisted: "its path names no student"}


def test_what_two_hand_ins_claim_is_given_to_neither() -> None:
    paths = [f"Ana Maria Ruiz/{FILE}", f"aruiz/{FILE}", f"boneil/{FILE}"]
    found = collected(paths, ROSTER)
    assert found.students == {paths[2]: (BO, FILE)}
    assert set(found.left_out.values()) == {"aruiz is claimed by 'Ana Maria Ruiz' and 'aruiz'"}


@pytest.mark.parametrize("path", [f"mallory_9_9_{FILE}", f"M_9_assignsubmission_file_/{FILE}", FILE, f"M, M(m)/{FILE}"])
def test_who_is_not_in_the_roster_is_left_out_by_name(path: str) -> None:
    found = collected([path, f"ruizana_1001_9_{FILE}"] if "/" not in path else [path], ROSTER)
    assert path in found.left_out


def test_a_group_has_no_single_student() -> None:
    path = f"assignment_77_export/submission_9003/{FILE}"
    assert collected([path], ROSTER, GRADESCOPE).left_out == {path: "a group handed it in; copy it by hand"}


def test_who_handed_in_other_files_only_is_named() -> None:
    theirs = [f"Ana Maria Ruiz_1_{MOODLE}/work.zip", f"Bo O'Neil_2_{MOODLE}/notes.txt", f"Eve_3_{MOODLE}/work.zip"]
    found = collected([*theirs, f"Bo O'Neil_2_{MOODLE}/{FILE}", "grades.csv"], ROSTER)
    assert found.left_out.pop(theirs[2]).startswith("'Eve' is not in the roster")
    assert found.left_out == {theirs[0]: "aruiz handed in no notebook"}


@pytest.mark.parametrize("folder", ["", "Start here/", "work/Start here/"])
def test_google_classroom_without_a_roster_names_no_student_and_asks_for_one(folder: str) -> None:
    paths = [f"{folder}Ana Maria Ruiz - {FILE}", f"{folder}Bo O'Neil - {FILE}"]
    found = collected([*paths, f"{folder}notes.txt"], Roster())
    assert (found.students, sorted(found.left_out)) == ({}, paths)
    assert all(
        "Google Classroom needs the course's roster (autograder roster" in why for why in found.left_out.values()
    )
    assert [student for student, _ in collected(paths, BY_NAME).students.values()] == [ANA, BO]


@pytest.mark.parametrize("path", [f"-rf/{FILE}", f"***/{FILE}", f"STUDENT/notebooks/{FILE}", FILE])
def test_without_a_roster_a_student_is_a_folder_with_the_name_of_one(path: str) -> None:
    found = collected([path], Roster())
    assert (found.students, list(found.left_out)) == ({}, [path])


def test_marks_that_no_folder_can_have_go() -> None:
    paths = [f"Bo O'Neil_1005_assignsubmission_file_/{FILE}", f"Ruiz, Ana_1001_assignsubmission_file_/{FILE}"]
    assert [student for student, _ in collected(paths, Roster()).students.values()] == ["Bo ONeil", "Ruiz Ana"]
