"""Grade 21 made-up hand-ins of the capstone, with the points that a person gives for the work logs.

Four of them reach all points of the counters, each by a route of its own. One changes nothing, and five compute
something else, cheaply: these get nothing for it. The others are partial, damaged or hostile. Answers and marks are
those of the exercises' controls, so every mark is known. The names are roles.
"""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.batch import LocalEngine
from autograder.classroom.nbgrader.course import Course, open_course
from autograder.classroom.nbgrader.grade import Graded, grade_course
from autograder.classroom.nbgrader.release import release
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import REFERENCE
from autograder.host.sandbox import Sandbox
from demo.class_file import Member
from demo.generated import HOSTILE
from demo.hand_in import hand_in
from demo.outcome import TOLERANCE, differences, read_marks

ASSIGNMENT = "17_capstone"
STEP, REVIEW, LOG, RECORD = "17_optimise_step", "17_review_fusion", "17_work_log", "17_baseline"
ATTACK = "an attack"
ROLES: Mapping[str, Mapping[str, str]] = {
    "route_fx_pass": {STEP: REFERENCE, REVIEW: REFERENCE, LOG: REFERENCE, RECORD: REFERENCE},
    "route_schedule": {STEP: "a schedule of a module around the graph", LOG: "three dead ends before a success"},
    "route_backend": {STEP: "a backend that lowers into a new graph", LOG: "another counter for each entry"},
    "route_own_operator": {STEP: "an operator of its own", REVIEW: "lambdas in another order"},
    "unchanged": {STEP: "unchanged", LOG: REFERENCE},
    "cheap_and_wrong": {STEP: "cheap and wrong", LOG: "no dead end"},
    "dropout_gone": {STEP: "dropout is gone"},
    "dropout_off": {STEP: "dropout is off"},
    "norm_without_bias": {STEP: "no bias of the norm"},
    "kernel_without_other": {STEP: "no other= where it matters"},
    "one_p_for_all": {STEP: "a p by heart", REVIEW: "three times a keyword"},
    "record_only": {RECORD: REFERENCE},
    "record_of_nowhere": {RECORD: "no environment"},
    "review_only": {REVIEW: "lambdas in another order"},
    "review_in_part": {REVIEW: "two keywords and no reader"},
    "log_only": {LOG: REFERENCE},
    "log_without_threats": {LOG: "no threat"},
    "log_of_prose": {LOG: "prose"},
    "damaged": {REVIEW: REFERENCE, LOG: "another unit"},
    "hostile_step": {STEP: ATTACK, LOG: "no entry"},
    "hostile_log": {LOG: ATTACK, REVIEW: "three times a write"},
}
"""From the role to the control that it hands in for each exercise."""
DAMAGE = {"damaged": ("points_400", "rename"), "log_only": ("rewrite_texts",)}
Give = Callable[[Course, Sequence[Member]], None]
"""Enters the points of `GIVEN` for the members that are there."""
GIVEN = {"route_fx_pass": 24.0, "route_schedule": 17.5, "route_backend": 20.0, "unchanged": 22.0, "log_only": 12.0}
"""What the person gives for the logs that were read; the other logs wait."""


@dataclass(frozen=True)
class Capstone:
    """The result of grading the class."""

    graded: Graded  # after the person's points
    differences: tuple[str, ...]
    seconds: float


def capstone_class(roles: Iterable[str] = ROLES) -> tuple[Member, ...]:
    """Return the members with these roles, by default all, with the marks that the machine must give them."""
    return tuple(_member(role, ROLES[role]) for role in roles)


def _member(role: str, chosen: Mapping[str, str]) -> Member:
    found = {exercise: _known(exercise, control) for exercise, control in chosen.items()}
    answers = {exercise: (text,) for exercise, (text, _) in found.items()}
    marks = {exercise: points for exercise, (_, points) in found.items()}
    damage = {ASSIGNMENT: DAMAGE[role]} if role in DAMAGE else {}
    return Member(role, "capstone", "", answers, marks, damage)


def _known(exercise: str, control: str) -> tuple[str, float]:
    """Return an answer and its marks."""
    if control == ATTACK:
        return HOSTILE[0], 0.0
    part = hidden_part(exercise)
    assert part is not None, "only an instructor's installation makes a class"
    (found,) = [one for one in part.controls if one.name == control and not one.below]
    return found.answer, found.marks


def give_points(course: Course, members: Sequence[Member]) -> None:
    """Enter the person's points into the gradebook, as Formgrader does."""
    with course.gradebook() as gradebook:
        for name, points in ((m.name, GIVEN[m.name]) for m in members if m.name in GIVEN):
            grade = gradebook.find_grade(LOG, ASSIGNMENT, ASSIGNMENT, name)
            grade.manual_score, grade.needs_manual_grade = points, False
        gradebook.db.commit()


def run_capstone(work: Path, *, sandbox: Sandbox, roles: Iterable[str] = ROLES, give: Give = give_points) -> Capstone:
    """Release, hand in, grade, let a person give points, and grade again, below `work`, which is emptied first.

    `give` enters the points; the browser's test enters them in Formgrader's page.
    """
    started = time.monotonic()
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    os.environ |= {"COURSE_WORK": str(work), "COURSE_EXCHANGE": str(work / "exchange")}  # for nbgrader_config.py
    course, members = open_course(), capstone_class(roles)
    release(course, [ASSIGNMENT])
    for member in members:
        hand_in(member, course.release, course.submitted)
    engine, report = LocalEngine(sandbox), work / "report"
    first = grade_course(course, [ASSIGNMENT], engine=engine, report=report, title="Class report: capstone")
    wrong = [*first.failures, *differences(members, first.records, first.csv), *_listed(course, members)]
    give(course, members)
    graded = grade_course(course, [ASSIGNMENT], engine=engine, report=report, title="Class report: capstone")
    wrong += wrong_sums(members, graded)
    return Capstone(graded, tuple(wrong), time.monotonic() - started)


def _listed(course: Course, members: Sequence[Member]) -> list[str]:
    """Return a sentence for each log that Formgrader lists and should not, or the other way round."""
    with course.gradebook() as gradebook:
        waits = {
            member.name: bool(gradebook.find_grade(LOG, ASSIGNMENT, ASSIGNMENT, member.name).needs_manual_grade)
            for member in members
        }
    return [
        f"{member.name}: the log {'waits' if waits[member.name] else 'does not wait'} for a person."
        for member in members
        if waits[member.name] is not (LOG in member.answers)
    ]


def wrong_sums(members: Sequence[Member], graded: Graded) -> list[str]:
    """Return a sentence for each mark that is not the sum of the machine's points and the person's."""
    exported, wrong = read_marks(graded.csv), []
    reported = {record.student: record.points for record in graded.records}
    for member in members:
        expected = sum(member.marks.values()) + GIVEN.get(member.name, 0.0)
        for place, found in (("CSV", exported[member.name, ASSIGNMENT]), ("report", reported[member.name])):
            if abs(found - expected) > TOLERANCE:
                wrong.append(f"{member.name}: {found:g} points in the {place}; {expected:g} are right.")
    return wrong
