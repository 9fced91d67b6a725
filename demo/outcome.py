"""Compare a class's results with the expected ones: marks in records, gradebook and CSV, and pages of feedback."""

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.classroom.nbgrader.course import Course
from autograder.exercises import find, of_assignment
from autograder.host.records import EarnedBy, ExerciseRecord, SubmissionRecord
from demo.class_file import Member
from demo.hand_in import can_ask, fetch_feedback

TOLERANCE = 5e-3  # points; marks are stated with two decimals


def differences(members: Iterable[Member], records: Sequence[SubmissionRecord], marks_csv: Path) -> list[str]:
    """Return a sentence for each mark that differs; empty if all agree."""
    exported = read_marks(marks_csv)
    return [sentence for member in members for sentence in _of_member(member, records, exported)]


def read_marks(path: Path) -> dict[tuple[str, str], float]:
    """Return marks by student and assignment from nbgrader's CSV; hand-ins that were never scored are left out."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["score"]]
    return {(row["student_id"], row["assignment"]): float(row["score"]) for row in rows}


def _of_member(
    member: Member, records: Sequence[SubmissionRecord], exported: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    own = [record for record in records if record.student == member.name]
    got = {exercise.id: exercise for record in own for exercise in record.exercises}
    expected = {name: _stated(member, name, got.get(name)) for name in member.marks}
    for name, stated in expected.items():
        if name not in got:
            yield f"{member.name}: {name} was not graded; stated are {stated:g} points."
        elif abs(got[name].points - stated) > TOLERANCE:
            yield f"{member.name}: {name} got {got[name].points:g} points; stated are {stated:g}. {got[name].message}"
    for record in own:
        stated_sum = sum(expected.get(exercise.id, 0.0) for exercise in record.exercises)
        mark = exported.get((member.name, record.assignment))
        if mark is None or abs(mark - stated_sum) > TOLERANCE:
            yield f"{member.name}: the gradebook holds {mark} for {record.assignment}; stated are {stated_sum:g}."


def _stated(member: Member, name: str, graded: ExerciseRecord | None) -> float:
    """Return the stated marks: those for measured speed where that decided, and those for counted cost elsewhere."""
    is_measured = graded is not None and any(check.by is EarnedBy.MEASURED for check in graded.checks)
    return member.measured.get(name, member.marks[name]) if is_measured else member.marks[name]


def feedback_back(
    course: Course, members: Sequence[Member], homes: Path, assignments: Iterable[str]
) -> tuple[list[str], int]:
    """Fetch the feedback of all students; return a sentence for each fault, and the number of pages."""
    wrong: list[str] = []
    count = 0
    for assignment in assignments:
        released = (course.release / assignment / f"{assignment}.ipynb").read_text(encoding="utf-8")
        for member in members:
            home = homes / member.name
            if not can_ask(home, assignment):
                continue  # nothing handed in, or not through the exchange; then feedback is sent by e-mail
            pages = fetch_feedback(course, home, assignment)
            count += len(pages)
            known = "\n".join([released, *(part for parts in member.answers.values() for part in parts)])
            found = [fault for page in pages for fault in _faults(page.read_text(encoding="utf-8"), assignment, known)]
            found += [] if pages else ["did not come back"]
            wrong += [f"{member.name}: the feedback on {assignment} {fault}." for fault in found]
    return wrong, count


def _faults(page: str, assignment: str, known: str) -> Iterator[str]:
    """Yield the faults of a feedback page; check names in `known`, the student's own text, may be shown."""
    for exercise in of_assignment(assignment):
        if exercise not in page:
            yield f"lacks {exercise}"
    checks = [check for exercise in of_assignment(assignment) for check in find(exercise, hidden=True).checks]
    shown = {check.category for check in checks} | {check.name for check in checks if not check.hidden}
    for check in checks:
        if check.hidden and check.name not in shown and check.name not in known and check.name in page:
            yield f"shows the hidden check {check.name!r}"
