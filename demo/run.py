"""Run the demonstration: release, hand in and collect, grade, give back, and compare every mark with the stated one.

A run that was killed is taken up again by the next one, with the same secret seed and what its journal holds; after a
run that ended, the next one starts afresh.
"""

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.batch import LocalEngine, fingerprint, records_in, secret_seed
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.exercises import of_assignment
from autograder.host.sandbox import Sandbox
from demo.class_file import Member, read_class
from demo.hand_in import hand_in
from demo.outcome import differences, feedback_back
from demo.students import hand_over

UNFINISHED = "unfinished"  # lies in the work folder while a demonstration runs
HANDED_IN = "handed_in"
HOMES = "homes"  # of the students


@dataclass(frozen=True)
class DemoResult:
    """The result of a demonstration."""

    graded: Graded
    differences: tuple[str, ...]
    resumed: bool
    seconds: float


def run_demo(work: Path, class_folder: Path, report: Path, *, sandbox: Sandbox, slots: int | None = None) -> DemoResult:
    """Run the whole cycle below `work` on the class in `class_folder`."""
    started = time.monotonic()
    members = read_class(class_folder)
    resumed = (work / UNFINISHED).exists()
    if not resumed and work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / UNFINISHED).touch()
    os.environ |= {"COURSE_WORK": str(work), "COURSE_EXCHANGE": str(work / "exchange")}  # for nbgrader_config.py
    course = open_course()
    _say(f"Class of {len(members)}, sandbox level {sandbox.level}, work in {work}")
    _say(f"Secret seed drawn; its fingerprint is {fingerprint(secret_seed(course.seed_file))}")
    if resumed:
        count = sum(1 for _ in records_in(course.journal))
        _say(f"A demonstration was interrupted here; going on with {count} records from its journal")
    chosen = [name for name in course.assignments if _answered(name, members)]
    _prepare(course, members, work, chosen)
    graded = grade_course(
        course, engine=LocalEngine(sandbox, slots), report=report, title="Class report: demonstration"
    )
    for name in chosen:
        course.do("release_feedback", name)
    wrong, pages = feedback_back(course, members, work / HOMES, chosen)
    _say(f"Give back: {pages} pages of feedback fetched")
    found = (*graded.failures, *differences(members, graded.records, graded.csv), *wrong)
    (work / UNFINISHED).unlink()
    return DemoResult(graded, found, resumed, time.monotonic() - started)


def _answered(assignment: str, members: Sequence[Member]) -> list[Member]:
    return [member for member in members if member.answers.keys() & set(of_assignment(assignment))]


def _prepare(course: Course, members: Sequence[Member], work: Path, chosen: Sequence[str]) -> None:
    """Release the notebooks and collect what the class hands in, once: what is graded must not change on the way."""
    if (work / HANDED_IN).exists():
        return
    for folder in (course.submitted, work / "exchange", work / HOMES):
        shutil.rmtree(folder, ignore_errors=True)
    _say("Release: " + ", ".join(release(course, chosen)))
    for name in chosen:
        course.do("release_assignment", name)
    _say("Hand in: " + ", ".join(f"{member.name} ({member.kind})" for member in members))
    for member in members:
        hand_in(member, course.release, work / HOMES)
    for name in chosen:
        for member in _answered(name, members):
            hand_over(course, work / HOMES / member.name, name)
        course.do("collect", name)
    (work / HANDED_IN).touch()


def _say(sentence: str) -> None:
    print(f"==> {sentence}", flush=True)
