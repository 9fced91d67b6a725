"""Run the demonstration: release, hand in, grade, give back, and compare every mark with the stated one.

A run that was killed is taken up again by the next one, with the same secret seed and what its journal holds; after a
run that ended, the next one starts afresh.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.host.batch import LocalEngine, fingerprint, records_in, secret_seed
from autograder.host.demo.class_file import Member, read_class
from autograder.host.demo.hand_in import hand_in
from autograder.host.demo.stated_marks import differences
from autograder.host.nbgrader.course import Course, open_course
from autograder.host.nbgrader.grade import Graded, grade_course
from autograder.host.nbgrader.release import release
from autograder.host.sandbox import Sandbox

UNFINISHED = "unfinished"  # lies in the work folder while a demonstration runs
HANDED_IN = "handed_in"


@dataclass(frozen=True)
class DemoResult:
    """What a demonstration found."""

    graded: Graded
    differences: tuple[str, ...]
    resumed: bool
    seconds: float


def run_demo(work: Path, class_folder: Path, report: Path, *, sandbox: Sandbox, slots: int | None = None) -> DemoResult:
    """Run the whole cycle below ``work`` on the class in ``class_folder``."""
    started = time.monotonic()
    members = read_class(class_folder)
    resumed = (work / UNFINISHED).exists()
    if not resumed and work.exists():
        shutil.rmtree(work)
    work.mkdir(parents=True, exist_ok=True)
    (work / UNFINISHED).touch()
    os.environ["COURSE_WORK"] = str(work)  # read by nbgrader_config.py
    course = open_course()
    _say(f"Class of {len(members)}, sandbox level {sandbox.level}, work in {work}")
    _say(f"Secret seed drawn; its fingerprint is {fingerprint(secret_seed(course.seed_file))}")
    if resumed:
        count = sum(1 for _ in records_in(course.journal))
        _say(f"A demonstration was interrupted here; going on with {count} records from its journal")
    _prepare(course, members, work)
    graded = grade_course(
        course, engine=LocalEngine(sandbox, slots), report=report, title="Class report: demonstration"
    )
    found = (*graded.failures, *differences(members, graded.records, graded.csv))
    (work / UNFINISHED).unlink()
    return DemoResult(graded, found, resumed, time.monotonic() - started)


def _prepare(course: Course, members: Sequence[Member], work: Path) -> None:
    """Release the notebooks and let the class hand in, once: what is graded must not change on the way."""
    if (work / HANDED_IN).exists():
        return
    _say("Release: " + ", ".join(release(course)))
    shutil.rmtree(course.submitted, ignore_errors=True)
    for member in members:
        hand_in(member, course.release, course.submitted)
    _say("Hand in: " + ", ".join(f"{member.name} ({member.kind})" for member in members))
    (work / HANDED_IN).touch()


def _say(sentence: str) -> None:
    print(f"==> {sentence}", flush=True)
