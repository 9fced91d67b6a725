"""What a platform gives in one archive: unpacked within limits, and collected for the right students."""

import io
import logging
import os
import shutil
import zipfile
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from autograder.classroom.cli import main
from autograder.classroom.hand_in import read_hand_in
from autograder.classroom.nbgrader.course import Course
from autograder.classroom.nbgrader.left_out import to_decide
from autograder.classroom.notes import notes_for
from autograder.classroom.platforms.upload_archive import NotebookExtractor
from autograder.classroom.platforms.uploads import LATE, UploadCollector
from autograder.classroom.roster import import_roster
from autograder.classroom.status import REFUSED
from tests.architecture.source_tree import ROOT
from tests.autograder.host.forked_command import fork_command

NAME = "05_fx_rewrite"


def archive(folder: Path, members: dict[str, str | bytes]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(folder / "all.zip", "w", zipfile.ZIP_DEFLATED) as opened:
        for name, content in members.items():
            opened.writestr(name, content)
    return folder


def unpacked(tmp_path: Path, members: dict[str, str | bytes], log: logging.Logger, **settings: int) -> dict[str, str]:
    out = tmp_path / "out"
    out.mkdir()
    NotebookExtractor(log=log, **settings).extract(str(archive(tmp_path / "in", members)), str(out))
    return {str(path.relative_to(out)): path.read_text() for path in sorted(out.rglob("*")) if path.is_file()}


def test_an_archive_that_zipfile_cannot_read_stops_no_other(tmp_path: Path, log: logging.Logger) -> None:
    archive(tmp_path / "in", {"a_1_2_n.ipynb": "A"})
    whole = (tmp_path / "in" / "all.zip").read_bytes()
    at = whole.index(b"PK\x01\x02")  # the entry in the directory: version needed, flags, method
    (tmp_path / "in" / "a version.zip").write_bytes(whole[: at + 6] + b"\xff\x00" + whole[at + 8 :])
    (tmp_path / "in" / "a method.zip").write_bytes(whole[: at + 10] + b"\x63\x00" + whole[at + 12 :])
    (tmp_path / "in" / "a name.zip").write_bytes(
        whole.replace(b"a_1_2_n", b"a_1_\xff_n").replace(b"\x00\x08\x00", b"\x08\x08\x00")
    )
    out = tmp_path / "out"
    out.mkdir()
    NotebookExtractor(log=log).extract(str(tmp_path / "in"), str(out))
    assert (out / "a_1_2_n.ipynb").read_text() == "A"


@pytest.mark.parametrize("name", ["x" * 245 + ".ipynb", "é" * 122 + ".ipynb"])
def test_a_notebook_of_a_long_name_finds_its_place_or_is_left_out(
    tmp_path: Path, log: logging.Logger, name: str
) -> None:
    found = unpacked(tmp_path, {f"mallory_2_3_{name}": "M", "ada_1_2_n.ipynb": "A"}, log)
    assert found["ada_1_2_n.ipynb"] == "A"


def test_of_an_archive_only_notebooks_are_unpacked(tmp_path: Path, log: logging.Logger) -> None:
    nested = io.BytesIO()
    with zipfile.ZipFile(nested, "w") as inner:
        inner.writestr("x.ipynb", "{}")
    link = zipfile.ZipInfo("link.ipynb")
    link.external_attr = 0o120777 << 16
    members = {
        "a_1_2_n.ipynb": "A",
        "../evil.ipynb": "B",
        "/abs.ipynb": "C",
        "torch.py": "D",
        "n.zip": nested.getvalue(),
    }
    assert unpacked(tmp_path, members, log) == {"a_1_2_n.ipynb": "A"}
    assert not (tmp_path / "evil.ipynb").exists()
    with zipfile.ZipFile(tmp_path / "in" / "all.zip", "a") as opened:
        opened.writestr(link, "/etc/passwd")
    NotebookExtractor(log=log).extract(str(tmp_path / "in"), str(tmp_path / "out"))
    assert not (tmp_path / "out" / "link.ipynb").exists()


def test_a_zip_bomb_costs_its_sender_the_notebook_and_nobody_else(tmp_path: Path, log: logging.Logger, caplog) -> None:
    members = {"a_1_2_n.ipynb": b"0" * 5_000_000, "b_2_3_n.ipynb": "B"}
    assert unpacked(tmp_path, members, log, member_bytes=1_000_000) == {"b_2_3_n.ipynb": "B"}
    assert "'a_1_2_n.ipynb' was left out: it has more than 1000000 bytes" in caplog.text


def test_a_damaged_archive_is_said(tmp_path: Path, log: logging.Logger, caplog) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "all.zip").write_bytes(b"PK\x03\x04 and nothing after it")
    NotebookExtractor(log=log).extract(str(tmp_path / "in"), str(tmp_path))
    assert "download it again" in caplog.text


def zip_collected(
    work: Path, members: dict[str, str | bytes], worksheet: str = "", *options: str
) -> tuple[int, list[str], dict[str, str]]:
    """Run `nbgrader zip_collect` on an archive; return its status, its lines, and what is in submitted/."""
    (work / "release" / NAME).mkdir(parents=True)
    (work / "release" / NAME / f"{NAME}.ipynb").write_text("{}")
    folder = archive(work / "downloaded" / NAME / "archive", members)
    if worksheet:
        (folder / "Grades.csv").write_bytes(worksheet.encode())
    status, said = fork_command(["-m", "nbgrader", "zip_collect", NAME, *options], ROOT, os.environ).finish()
    found = {path.parent.parent.name: path.read_text() for path in (work / "submitted").rglob("*.ipynb")}
    return status, said.strip().splitlines(), found


def test_zip_collect_brings_notebooks_into_submitted(course: Course, tmp_path: Path) -> None:
    members = {f"lada_1234_9_{NAME}-1.ipynb": "new", f"lada_1234_8_{NAME}.ipynb": "old", f"b_77_3_{NAME}.ipynb": "B"}
    status, lines, found = zip_collected(tmp_path / "work", members)
    assert (status, found) == (0, {"ada": "new", "bob": "B"})
    assert [line.partition("] ")[2] for line in lines] == [
        "The platform gives no time for any hand-in; without one a hand-in counts as on time.",
        "All 2 notebooks of the archive were collected.",
    ]


def test_zip_collect_shows_every_step_to_who_asks_for_it(course: Course, tmp_path: Path) -> None:
    _, lines, _ = zip_collected(tmp_path / "work", {f"b_77_3_{NAME}.ipynb": "B"}, "", "--debug")
    assert any("Copying from" in line for line in lines)


def test_canvas_tells_who_is_late_and_the_class_report_says_so(course: Course, tmp_path: Path) -> None:
    members = {f"lada_LATE_1234_9_{NAME}.ipynb": "late", f"b_77_3_{NAME}.ipynb": "B"}
    status, lines, found = zip_collected(tmp_path / "work", members)
    assert (status, len(found)) == (0, 2)
    assert lines[1].endswith("The platform calls late: ada.")
    work = tmp_path / "work"
    assert notes_for(work / "submitted" / "ada" / NAME / f"{NAME}.ipynb", work / "aside") == (LATE,)
    assert notes_for(work / "submitted" / "bob" / NAME / f"{NAME}.ipynb", work / "aside") == ()


MOODLE = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum Grade","Last modified (submission)"\r\n'
    'Participant 77,"Ada L",A@x.org,Submitted,,10.00,"Thursday, 15 January 2026, 11:30 AM"\r\n'
    "Participant 1234,Bob,,Submitted,,10.00,-\r\n"
)


@pytest.mark.parametrize(("zone", "of_course"), [("Europe/Berlin", ""), ("", ""), ("", "Europe/Berlin")])
def test_moodles_worksheet_tells_whose_a_hand_in_is_and_when_it_came(
    course: Course, tmp_path: Path, zone: str, of_course: str
) -> None:
    files = {"Ada L_77": "hers", "Bob_1234": "his"}  # each number is the other's lms_user_id
    members = {f"{folder}_assignsubmission_file_/{NAME}.ipynb": text for folder, text in files.items()}
    settings = tmp_path / "course.toml"
    settings.write_text(f'time_zone = "{of_course}"')
    options = (f"--UploadCollector.timezone={zone}", f"--GradeOutsideKernel.settings={settings}")
    status, lines, found = zip_collected(tmp_path / "work", members, MOODLE, *options)
    zone = zone or of_course
    assert (status, found) == (0, {"ada": "hers", "bob": "his"})
    assert lines[0].endswith("The platform gives no time for bob; without one a hand-in counts as on time.")
    assert ("read in this machine's time zone; `time_zone` in course.toml sets" in lines[1]) == (zone == "")
    times = {path.parent.parent.name: path.read_text() for path in tmp_path.rglob("submitted/*/*/timestamp.txt")}
    assert list(times) == ["ada"]
    assert times["ada"] == "2026-01-15 10:30:00" or not zone


@pytest.mark.parametrize(
    ("before", "options", "expected"),
    [
        ("2026-01-15 12:00:00 UTC", [], "exchange"),  # later than what was uploaded at 10:30
        ("2026-01-15 10:00:00 UTC", ["--force"], "hers"),
        ("2026-01-15 10:00:00 UTC", [], "exchange"),
        ("no time", ["--force"], "hers"),
    ],
)
def test_of_two_ways_to_hand_in_the_later_counts(
    course: Course, tmp_path: Path, before: str, options: list[str], expected: str
) -> None:
    folder = tmp_path / "work" / "submitted" / "ada" / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text("exchange")
    (folder / "timestamp.txt").write_text(before)
    members = {
        f"Ada L_77_assignsubmission_file_/{NAME}.ipynb": "hers",
        f"Bob_1234_assignsubmission_file_/{NAME}.ipynb": "B",
    }
    zone = "--UploadCollector.timezone=Europe/Berlin"
    status, lines, found = zip_collected(tmp_path / "work", members, MOODLE, zone, *options)
    assert found.pop("ada") == expected
    if expected == "exchange" and before.endswith("10:00:00 UTC"):
        assert (status, found) == (1, {})  # nothing is copied by half
        assert lines[-1].endswith("ada handed in before; to replace that, add --force")
    else:
        assert (status, found) == (0, {"bob": "B"})
        assert any("counts more, and was handed in another way, was kept: ada." in line for line in lines) == (
            expected == "exchange"
        )


@pytest.mark.parametrize(("minutes", "expected"), [(15, "hers"), (16, "exchange")])
def test_an_upload_after_the_quarter_of_an_hour_does_not_count_beside_one_in_time_and_the_report_says_so(
    course: Course, tmp_path: Path, minutes: int, expected: str
) -> None:
    folder = course.submitted / "ada" / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text("exchange")
    (folder / "timestamp.txt").write_text("2026-01-15 10:00:00 UTC")
    with course.gradebook() as gradebook:
        due = datetime(2026, 1, 15, 10, 30) - timedelta(minutes=minutes)  # the upload is of 10:30 UTC
        gradebook.update_or_create_assignment(NAME, duedate=due)
    members = {f"Ada L_77_assignsubmission_file_/{NAME}.ipynb": "hers"}
    zone = "--UploadCollector.timezone=Europe/Berlin"
    status, _, found = zip_collected(tmp_path / "work", members, MOODLE, zone, "--force")
    assert (status, found["ada"]) == (0, expected)
    notes = notes_for(folder / f"{NAME}.ipynb", course.quarantine)
    told = [note.partition(";")[0] for note in notes]
    assert told == ["A later hand-in, of 2026-01-15 10:30 UTC, is late and does not count"] * (expected == "exchange")


def test_which_of_two_counts_is_for_a_person_where_one_has_no_time(course: Course, tmp_path: Path) -> None:
    folder = tmp_path / "work" / "submitted" / "ada" / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.ipynb").write_text("exchange")
    (folder / "timestamp.txt").write_text("2026-01-15 10:00:00 UTC")
    status, lines, found = zip_collected(tmp_path / "work", {f"lada_LATE_1234_8_{NAME}.ipynb": "A"}, "", "--force")
    assert (status, found) == (REFUSED, {"ada": "exchange"})
    assert "(ada has a hand-in of 2026-01-15 10:00 UTC, and the platform gives no time for this one; move" in lines[-1]


def test_a_time_zone_that_does_not_exist_is_refused_in_one_sentence(course: Course, tmp_path: Path) -> None:
    members = {f"lada_1234_8_{NAME}.ipynb": "A"}
    status, lines, found = zip_collected(tmp_path / "work", members, "", "--UploadCollector.timezone=Berlin")
    assert (status, found) == (1, {})
    assert [line.partition("] ")[2] for line in lines] == ["'Berlin' is not a time zone; write it as in Europe/Berlin"]


def test_zip_collect_names_what_it_leaves_out_on_its_last_line(course: Course, tmp_path: Path) -> None:
    folder = "Ada L_1234_assignsubmission_file_"
    members = {
        f"{folder}/homework/{NAME}.ipynb": "hers",
        f"{folder}/.ipynb_checkpoints/{NAME}-checkpoint.ipynb": "a copy of Jupyter's",
        f"Bo O'Neil_55_assignsubmission_file_/{NAME}.ipynb": "not in the roster",
        "Bob_77_assignsubmission_file_/work.zip": "no notebook",
    }
    status, (*_, line), found = zip_collected(tmp_path / "work", members)
    assert (status, found) == (REFUSED, {"ada": "hers"})
    assert "1 notebooks were collected, 2 hand-ins were left out for you to decide:" in line
    assert "\"Bo O'Neil_55_assignsubmission_file_/" in line
    assert "'Bob_77_assignsubmission_file_/work.zip' (bob handed in no notebook)" in line


def to_decide_in(course: Course) -> list[tuple[str, str]]:
    """Return what the class report says of hand-ins that were left out: the path, and the sentence."""
    places = list(course.submitted.rglob("*.ipynb"))
    there = [read_hand_in(path.parent.name, path.parent.parent.name, path, course.quarantine) for path in places]
    assert [*to_decide(course, there, ["another notebook"])] == []
    return [(entry.student, entry.sentence) for entry in to_decide(course, there, [NAME])]


def test_what_was_left_out_is_for_a_person_until_it_is_collected_or_dismissed(course: Course, tmp_path, capsys) -> None:
    bo, bob = (f"{who}_assignsubmission_file_" for who in ("Bo O'Neil_55", "Bob_77"))
    members = {
        f"Ada L_1234_assignsubmission_file_/{NAME}.ipynb": "untouched",
        f"{bo}/{NAME}.ipynb": "untouched",  # equal to what ada handed in
        f"{bob}/work.zip": "no notebook",
    }
    work = tmp_path / "work"
    assert zip_collected(work, members)[0] == REFUSED
    (first, said), (second, told) = to_decide_in(course)
    assert (first, second) == (f"{bo}/{NAME}.ipynb", f"{bob}/work.zip")
    assert said.startswith('`zip_collect` left it out: "Bo O\'Neil" is not in the roster')
    assert f"Copy it by hand into {course.submitted}/STUDENT/{NAME}, or dismiss it: `autograder left-out`." in told

    (course.submitted / "cleo" / NAME).mkdir(parents=True)
    (course.submitted / "cleo" / NAME / f"{NAME}.ipynb").write_text("untouched")  # Bo's, by hand
    assert [path for path, _ in to_decide_in(course)] == [f"{bob}/work.zip"]

    listed, wrong = (main(["left-out"]), main(["left-out", "--dismiss", "abc"]))
    out, err = capsys.readouterr()
    assert (listed, wrong) == (0, 2)
    assert "nothing that was left out has the id 'abc'" in err
    number = next(line for line in out.splitlines() if "work.zip (bob handed in no notebook)" in line).split()[0]
    assert main(["left-out", "--dismiss", number]) == 0
    assert "work.zip" not in capsys.readouterr().out
    assert to_decide_in(course) == []


def test_a_later_run_forgets_what_it_collects_and_keeps_what_it_has_not_seen(course: Course, tmp_path: Path) -> None:
    work = tmp_path / "work"
    members = {f"eve_1111_9_{NAME}.ipynb": "E", f"mallory_2222_9_{NAME}.ipynb": "M"}
    assert zip_collected(work, members)[0] == REFUSED
    assert [path for path, _ in to_decide_in(course)] == sorted(members)

    (tmp_path / "roster.csv").write_text("id,lms_user_id\neve,1111\n")
    import_roster(course, tmp_path / "roster.csv")
    shutil.rmtree(work / "downloaded")
    shutil.rmtree(work / "release")
    status, _, found = zip_collected(work, {f"eve_1111_9_{NAME}.ipynb": "E"}, "", "--force")
    assert (status, found) == (0, {"eve": "E"})
    assert [path for path, _ in to_decide_in(course)] == [f"mallory_2222_9_{NAME}.ipynb"]


def test_one_file_is_read_without_the_command_too(course: Course, log: logging.Logger) -> None:
    collector = UploadCollector(log=log, db_url=course.api.coursedir.db_url)
    path = f"/extracted/Ada L_1234_assignsubmission_file_/extracted/{NAME}.ipynb"
    assert collector.collect(path) == {"student_id": "ada", "file_id": NAME}
    assert collector.collect(f"/extracted/Eve_9_assignsubmission_file_/{NAME}.ipynb") is None


def test_zip_collect_finds_gradescopes_students_in_its_list(course: Course, tmp_path: Path) -> None:
    people = (
        "---\nsubmission_9001:\n  :submitters:\n  - :name: Ada L\n    :sid: '1234'\n    :email: a@x.org\n"
        "  :created_at: 2026-01-15 12:00:00.000000000 Z\n  :score: 0.0\n  :history:\n  - :id: 8\n    :name: x\n"
        'submission_9002:\n  :submitters:\n  - :name: "Bob: B"\n    :sid:\n    :email: b@x.org\n'
    )
    root = "assignment_55_export"
    files = {f"{root}/submission_{number}/{NAME}.ipynb": str(number) for number in (9001, 9002)}
    status, (*_, line), found = zip_collected(tmp_path / "work", {f"{root}/submission_metadata.yml": people, **files})
    assert (status, found) == (REFUSED, {"ada": "9001"})
    assert [path.read_text() for path in tmp_path.rglob("submitted/*/*/timestamp.txt")] == ["2026-01-15 12:00:00"]
    assert "'Bob: B' is not in the roster" in line


def test_a_damaged_archive_is_no_success(course: Course, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "downloaded" / NAME / "archive").mkdir(parents=True)
    (work / "downloaded" / NAME / "archive" / "all.zip").write_bytes(b"PK")
    status, said = fork_command(["-m", "nbgrader", "zip_collect", NAME], ROOT, os.environ).finish()
    assert status == REFUSED
    assert "'all.zip' (it is not a zip archive or is damaged; download it again)" in said.strip().splitlines()[-1]


def test_a_member_that_cannot_be_unpacked_leaves_the_others_alone(tmp_path: Path, log: logging.Logger, caplog) -> None:
    folder = archive(tmp_path / "in", {"a_1_2_n.ipynb": "A" * 500, "b_2_3_n.ipynb": "B"})
    content = bytearray((folder / "all.zip").read_bytes())
    start = content.index(b"a_1_2_n.ipynb") + len("a_1_2_n.ipynb")
    content[start : start + 4] = b"\xff\xff\xff\xff"
    (folder / "all.zip").write_bytes(content)
    (tmp_path / "out").mkdir()
    NotebookExtractor(log=log).extract(str(folder), str(tmp_path / "out"))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["b_2_3_n.ipynb"]
    assert "'a_1_2_n.ipynb' was left out: it cannot be unpacked" in caplog.text
