"""Through nbgrader's exchange and back: whose a hand-in is, what is copied of it, and who gets feedback."""

import os
import pwd
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from nbgrader.api import Gradebook

from autograder.classroom.assistants import FOR_ASSISTANTS
from autograder.classroom.nbgrader import collect
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.quarantine import SECRET, correct_submissions
from autograder.classroom.notes import notes_for
from autograder.classroom.term.which_counts import TIMESTAMP
from demo.hand_in import fetch_feedback, submit
from tests import skips

NAME = "04_fx_capture"
TIME = "2026-01-15 12:00:00.000000 UTC"
MALLORY, BOB = 70001, 70002
ACCOUNTS = {"mallory": MALLORY, "bob": BOB}


@pytest.fixture(scope="module")
def roster(tmp_path_factory: pytest.TempPathFactory, quick_gradebooks: None) -> Path:
    """Make a gradebook once for all."""
    work = tmp_path_factory.mktemp("roster")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COURSE_WORK", str(work))
        url = open_course().api.coursedir.db_url
    with Gradebook(url, "fusion-course") as gradebook:
        gradebook.add_assignment(NAME, duedate="2026-01-15 13:00:00 UTC")
        for student in ("ada", "bob", "mallory"):
            gradebook.add_student(student)
    return work / "gradebook.db"


@pytest.fixture
def course(roster: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    monkeypatch.setenv("COURSE_WORK", str(tmp_path / "work"))
    (tmp_path / "work").mkdir()
    shutil.copy(roster, tmp_path / "work")
    opened = open_course()
    inbound(opened).mkdir(parents=True)
    return opened


@pytest.fixture
def accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let bob and mallory have accounts, and nobody else."""

    def by_name(name: str) -> SimpleNamespace:
        return SimpleNamespace(pw_uid=ACCOUNTS[name])

    def by_uid(uid: int) -> SimpleNamespace:
        return SimpleNamespace(pw_name={uid: name for name, uid in ACCOUNTS.items()}[uid])

    monkeypatch.setattr(collect, "pwd", SimpleNamespace(getpwnam=by_name, getpwuid=by_uid))


as_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{skips.ROOT}: to give files to other accounts")


def inbound(course: Course) -> Path:
    return Path(course.api.config.Exchange.root, "fusion-course", "inbound")


def put(course: Course, student: str, text: str = "{}", *, time: str = TIME, owner: int | None = None) -> Path:
    folder = inbound(course) / f"{student}+{NAME}+{time}+{len(list(inbound(course).iterdir()))}"
    folder.mkdir()
    (folder / f"{NAME}.ipynb").write_text(text)
    (folder / TIMESTAMP).write_text(time)
    (folder / SECRET).write_text(f"secret of {folder.name}")
    for path in (folder, *folder.iterdir()) if owner is not None else ():
        os.chown(path, owner, -1)
    return folder


def collected(course: Course, student: str) -> dict[str, str]:
    folder = course.submitted / student / NAME
    return {path.name: path.read_text() for path in sorted(folder.iterdir())} if folder.is_dir() else {}


def do_collect(course: Course) -> str:
    return course.do("collect", NAME)


def test_a_hand_in_is_collected_with_what_brings_its_feedback_back(course: Course) -> None:
    put(course, "ada", "hers")
    do_collect(course)
    assert set(collected(course, "ada")) == {f"{NAME}.ipynb", TIMESTAMP, SECRET}
    assert correct_submissions(course.submitted, course.quarantine, [NAME]) == []
    assert SECRET in collected(course, "ada")


def test_the_rule_for_assistants_that_comes_back_is_left_in_the_exchange_without_a_word(course: Course) -> None:
    folder = put(course, "ada", "hers")
    for name in FOR_ASSISTANTS:
        (folder / name).write_text("changed")
    assert "not part of a hand-in" not in do_collect(course)
    assert set(collected(course, "ada")) == {f"{NAME}.ipynb", TIMESTAMP, SECRET}


def test_the_newest_one_counts_also_when_an_older_one_is_here(course: Course) -> None:
    put(course, "ada", "old")
    do_collect(course)
    put(course, "ada", "new", time="2026-01-15 12:30:00.000000 UTC")
    assert "1 hand-ins collected" in do_collect(course)
    assert collected(course, "ada")[f"{NAME}.ipynb"] == "new"
    assert "0 hand-ins collected, 1 were here already" in do_collect(course)


@pytest.mark.parametrize("when", ["before it is looked at", "before it is copied"])
def test_a_folder_that_disappears_meanwhile_stops_nobody(course: Course, monkeypatch, when: str) -> None:
    put(course, "ada", "hers")
    gone = put(course, "bob", "his")
    refusal = collect.CheckedCollect._refusal

    def late(self: collect.CheckedCollect, folder: Path, student: str) -> str:
        if folder == gone and when == "before it is looked at":
            shutil.rmtree(gone)
        found = refusal(self, folder, student)
        if folder == gone and when == "before it is copied":
            shutil.rmtree(gone)
        return found

    monkeypatch.setattr(collect.CheckedCollect, "_refusal", late)
    log = do_collect(course)
    assert "1 hand-ins collected" in log
    assert f"{gone.name!r} was left out" in log
    assert "No such file or directory" in log
    assert (collected(course, "ada")[f"{NAME}.ipynb"], collected(course, "bob")) == ("hers", {})
    assert not list(course.submitted.glob("*/.*"))


def test_a_time_that_nobody_can_read_in_a_collected_folder_stops_nobody(course: Course) -> None:
    for student in ("ada", "bob"):
        put(course, student, "old")
    do_collect(course)
    (course.submitted / "bob" / NAME / TIMESTAMP).write_text("yesterday")
    put(course, "ada", "new", time="2026-01-15 12:30:00.000000 UTC")
    do_collect(course)
    assert collected(course, "ada")[f"{NAME}.ipynb"] == "new"


@as_root
@pytest.mark.usefixtures("accounts")
def test_a_folder_under_another_ones_name_is_left_out_and_named(course: Course) -> None:
    put(course, "bob", "his", owner=BOB)
    put(course, "bob", "forged", time="2026-01-15 12:59:00.000000 UTC", owner=MALLORY)
    log = do_collect(course)
    assert collected(course, "bob")[f"{NAME}.ipynb"] == "his"
    assert "handed in under the name bob, but the account mallory put it there" in log


@as_root
@pytest.mark.usefixtures("accounts")
def test_an_account_of_the_class_cannot_speak_for_a_student_without_one(course: Course) -> None:
    put(course, "ada", "forged", owner=MALLORY)
    put(course, "bob", "by the instructor", owner=os.geteuid())
    do_collect(course)
    assert collected(course, "ada") == {}
    assert collected(course, "bob")[f"{NAME}.ipynb"] == "by the instructor"


@as_root
def test_where_accounts_are_not_students_everybody_is_collected(course: Course) -> None:
    put(course, "ada", "hers", owner=MALLORY)
    do_collect(course)
    assert collected(course, "ada")[f"{NAME}.ipynb"] == "hers"


@pytest.mark.parametrize(
    "name", [f"x+{NAME}+z", f"x+{NAME}+2999-13-45+r", f"-rf+{NAME}+{TIME}+r", f"*+{NAME}+{TIME}+r"]
)
def test_a_name_that_says_nothing_stops_nobody_elses_collection(course: Course, name: str) -> None:
    (inbound(course) / name).mkdir()
    (inbound(course) / f"bob+{NAME}+{TIME}+link").symlink_to("/")
    put(course, "ada", "hers")
    assert "was left out" in do_collect(course)
    assert [path.name for path in course.submitted.iterdir()] == ["ada"]


def _link(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").unlink()
    (folder / f"{NAME}.ipynb").symlink_to("/etc/passwd")


def _second_name(folder: Path) -> None:
    os.link(folder / f"{NAME}.ipynb", folder.parents[2] / "second")


def _pipe(folder: Path) -> None:
    (folder / f"{NAME}.ipynb").unlink()
    os.mkfifo(folder / f"{NAME}.ipynb")


@pytest.mark.parametrize(
    ("change", "words"), [(_link, "it is a link"), (_second_name, "a second name"), (_pipe, "not a regular file")]
)
def test_a_notebook_that_is_something_else_is_not_copied_and_the_class_report_says_why(
    course: Course, change: Callable[[Path], None], words: str
) -> None:
    change(put(course, "ada"))
    do_collect(course)
    assert f"{NAME}.ipynb" not in collected(course, "ada")
    correct_submissions(course.submitted, course.quarantine, [NAME])
    notes = " ".join(notes_for(course.submitted / "ada" / NAME / f"{NAME}.ipynb", course.quarantine))
    assert words in notes
    assert "was not handed in" in notes


def test_links_and_other_files_stay_in_the_exchange(course: Course) -> None:
    folder = put(course, "ada", "hers")
    (folder / "data").symlink_to("/")
    (folder / "torch.py").write_text("allclose = None")
    assert "'data', 'torch.py': not part of a hand-in, left in the exchange" in do_collect(course)
    assert set(collected(course, "ada")) == {f"{NAME}.ipynb", TIMESTAMP, SECRET}


def test_a_time_that_only_the_student_vouches_for_is_noted(course: Course) -> None:
    put(course, "ada", "hers")  # says January, is written now
    do_collect(course)
    (noted,) = notes_for(course.submitted / "ada" / NAME / f"{NAME}.ipynb", course.quarantine)
    assert "after the due time" in noted


def test_feedback_goes_to_everybody_who_handed_in_there(course: Course) -> None:
    for student in ("ada", "bob", "mallory"):
        folder = course.feedback / student / NAME
        folder.mkdir(parents=True)
        (folder / f"{NAME}.html").write_text(f"for {student}")
        (folder / TIMESTAMP).write_text(TIME)
        if student != "bob":
            (folder / SECRET).write_text(student)
    log = course.do("release_feedback", NAME)
    released = inbound(course).with_name("feedback")
    assert sorted(path.read_text() for path in released.glob("*.html")) == ["for ada", "for mallory"]
    assert "can only be sent from" in log
    assert log.rstrip().endswith("bob")
    shutil.rmtree(released)


def give_feedback(course: Course, student: str) -> None:
    """Make feedback as nbgrader does, with the files that were handed in beside the notebook."""
    folder = course.feedback / student / NAME
    folder.mkdir(parents=True)
    (folder / f"{NAME}.html").write_text(f"for {student}")
    for name in (TIMESTAMP, SECRET):
        shutil.copy(course.submitted / student / NAME / name, folder)


@pytest.mark.parametrize("names", [["a (1).ipynb"], ["a.ipynb", "b.ipynb"]])
def test_feedback_comes_back_under_the_names_that_were_handed_in(course: Course, names: list[str]) -> None:
    home = course.submitted.parent / "homes" / "ada"
    (home / NAME).mkdir(parents=True)
    inbound(course).with_name("outbound").joinpath(NAME).mkdir(parents=True)
    for name in names:
        (home / NAME / name).write_text("hers")
    submit(course, home, NAME)
    do_collect(course)
    for _ in range(2):  # a second run of the grading finds the notebook renamed
        correct_submissions(course.submitted, course.quarantine, [NAME])
    give_feedback(course, "ada")
    course.do("release_feedback", NAME)
    pages = {path.name: path.read_text() for path in fetch_feedback(course, home, NAME)}
    assert pages == {name.replace(".ipynb", ".html"): "for ada" for name in names}


@pytest.mark.parametrize("secret", [b"\xff", b""])
def test_a_secret_that_is_not_text_keeps_back_only_its_own_feedback(course: Course, secret: bytes) -> None:
    for student in ("ada", "bob"):
        put(course, student)
    do_collect(course)
    (course.submitted / "ada" / NAME / SECRET).write_bytes(secret)
    for student in ("ada", "bob"):
        give_feedback(course, student)
    log = course.do("release_feedback", NAME)
    released = inbound(course).with_name("feedback")
    assert [path.read_text() for path in released.glob("*.html")] == ["for bob"]
    assert "The feedback of ada was not released" in log


def test_a_copied_folder_shows_no_student_the_marks_of_another(course: Course) -> None:
    for student in ("ada", "bob", "cleo"):
        put(course, student)
    do_collect(course)
    for student in ("ada", "bob"):
        (course.submitted / student / NAME / SECRET).write_text("one secret")
    for student in ("ada", "bob", "cleo"):
        give_feedback(course, student)
    released = inbound(course).with_name("feedback")
    shutil.move(course.feedback / "bob", course.feedback.with_name("later"))
    course.do("release_feedback", NAME)
    assert sorted(path.read_text() for path in released.glob("*.html")) == ["for ada", "for cleo"]
    shutil.move(course.feedback.with_name("later"), course.feedback / "bob")
    log = course.do("release_feedback", NAME)
    assert [path.read_text() for path in released.glob("*.html")] == ["for cleo"]
    for student, other in (("ada", "bob"), ("bob", "ada")):
        assert f"The feedback of {student} was not released, for it would be one file with that of {other}" in log
    course.api.config.CourseDirectory.student_id = "ada"
    assert "of ada was not released" in course.do("release_feedback", NAME)
    assert len([*released.glob("*.html")]) == 1


def test_accounts_of_this_machine_are_read_as_they_are() -> None:
    assert collect._uid(pwd.getpwuid(0).pw_name) == 0
    assert collect._account(0) == pwd.getpwuid(0).pw_name
    assert (collect._uid("no such account"), collect._account(4_000_000_000)) == (None, "")
