"""Run an instructor's afternoon: a class of sixty hands in by exchange and upload, is graded, and gets its feedback.

The steps are those of the guide for instructors (docs/instructor.md), and the seconds of each step are printed.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader.course import Course, NbgraderError, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.classroom.roster import import_roster
from autograder.host.sandbox import Sandbox
from demo.class_file import Member
from demo.generated import FIRST_LMS_ID, generated_class, write_roster
from demo.hand_in import hand_in, hand_over, upload
from demo.outcome import differences, feedback_back, read_marks

ROOT = Path(__file__).parents[1]
UPLOADED = ("full", "partial", "split")  # every second student of these kinds hands in through the learning platform


@dataclass(frozen=True)
class Afternoon:
    """The result of an afternoon."""

    graded: Graded
    differences: tuple[str, ...]
    pages: int  # of feedback that students fetched
    seconds: float


def run_afternoon(work: Path, assignment: str, size: int, *, sandbox: Sandbox, answers: Path) -> Afternoon:
    """Run the whole cycle below `work`, which is emptied first."""
    started = time.monotonic()
    shutil.rmtree(work, ignore_errors=True)
    os.environ |= {"COURSE_WORK": str(work), "COURSE_EXCHANGE": str(work / "exchange")}  # for nbgrader_config.py
    course, members, homes = open_course(), generated_class(assignment, size, answers=answers), work / "homes"
    by_upload = {m.name for n, m in enumerate(m for m in members if m.kind in UPLOADED) if n % 2}
    with _step("roster"):
        write_roster(members, work / "roster.csv")
        import_roster(course, work / "roster.csv")
    with _step("release"):
        release(course, [assignment])
        course.do("release_assignment", assignment)
    with _step("students hand in"):
        for member in members:
            hand_in(member, course.release, homes)
        _hand_in_all(course, members, homes, assignment, by_upload)
    with _step("collect"):
        course.do("collect", assignment)
        _zip_collect(assignment)
    with _step("grade, enter, feedback, report"):
        graded = grade_course(course, [assignment], engine=LocalEngine(sandbox), report=work / "report")
    with _step("again, with nothing new"), contextlib.redirect_stdout(None):
        grade_course(course, [assignment], engine=LocalEngine(sandbox), report=work / "report")
    with _step("give feedback back"):
        course.do("release_feedback", assignment)
        wrong, pages = feedback_back(course, members, homes, [assignment])
    found = (*graded.failures, *differences(members, graded.records, graded.csv), *_absent(members, graded), *wrong)
    return Afternoon(graded, found, pages, time.monotonic() - started)


def _hand_in_all(course: Course, members: Sequence[Member], homes: Path, assignment: str, by_upload: set[str]) -> None:
    for member in members:
        if member.kind == "absent" or member.name in by_upload:
            continue
        hand_over(course, homes / member.name, assignment)
    archive = course.journal.parent / "downloaded" / assignment / "archive" / "submissions.zip"
    numbers = {member.name: FIRST_LMS_ID + place for place, member in enumerate(members)}
    upload(archive, [homes / name for name in sorted(by_upload)], assignment, numbers)


def _zip_collect(assignment: str) -> None:
    command = [sys.executable, "-m", "nbgrader", "zip_collect", assignment]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", errors="replace")
    if done.returncode:
        raise NbgraderError(f"nbgrader zip_collect {assignment}: {done.stderr.strip()[-400:]}")


def _absent(members: Sequence[Member], graded: Graded) -> list[str]:
    known = {student for student, _ in read_marks(graded.csv)}
    return [f"{m.name}: stands in no line of {graded.csv.name}." for m in members if m.name not in known]


@contextlib.contextmanager
def _step(name: str) -> Iterator[None]:
    print(f"==> {name}", flush=True)
    started = time.monotonic()
    yield
    print(f"    {name}: {time.monotonic() - started:.1f} s", flush=True)
