"""Whether each student whose nbgrader has something to ask by gets feedback back, and what it must not show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from autograder.classroom.nbgrader.course import Course
from autograder.exercises import find, of_assignment
from demo import students
from demo.class_file import Member


def feedback_back(
    course: Course, members: Sequence[Member], homes: Path, assignments: Iterable[str]
) -> tuple[list[str], int]:
    """Fetch everybody's feedback; returns a sentence for each thing that is wrong, and how many pages came."""
    wrong: list[str] = []
    count = 0
    for assignment in assignments:
        released = (course.release / assignment / f"{assignment}.ipynb").read_text(encoding="utf-8")
        for member in members:
            home = homes / member.name
            if not students.can_ask(home, assignment):
                continue  # handed in nothing, or another way: then feedback is sent to them
            pages = students.fetch_feedback(course, home, assignment)
            count += len(pages)
            known = "\n".join([released, *(part for parts in member.answers.values() for part in parts)])
            found = [fault for page in pages for fault in _faults(page.read_text(encoding="utf-8"), assignment, known)]
            found += [] if pages else ["did not come back"]
            wrong += [f"{member.name}: the feedback on {assignment} {fault}." for fault in found]
    return wrong, count


def _faults(page: str, assignment: str, known: str) -> Iterator[str]:
    """What is wrong with a page of feedback for a student who has ``known`` in any case."""
    for exercise in of_assignment(assignment):
        if exercise not in page:
            yield f"lacks {exercise}"
    checks = [check for exercise in of_assignment(assignment) for check in find(exercise, hidden=True).checks]
    shown = {check.category for check in checks} | {check.name for check in checks if not check.hidden}
    for check in checks:
        if check.hidden and check.name not in shown and check.name not in known and check.name in page:
            yield f"shows the hidden check {check.name!r}"
