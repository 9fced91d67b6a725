"""Enter the marks of a class in nbgrader's gradebook and make its feedback, one hand-in at a time.

Whatever fails for one hand-in sets it aside with one sentence; the others are entered. A hand-in without a record, or
that nbgrader could not take, has no marks in the gradebook: not 0, and none of an earlier hand-in.
"""

import os
from collections.abc import Mapping, Sequence

from autograder.classroom.batch import is_final, stage
from autograder.classroom.hand_in import HandedIn
from autograder.classroom.nbgrader.course import Course, NbgraderError
from autograder.classroom.nbgrader.extensions import enter_extensions
from autograder.classroom.nbgrader.gradebook_state import (
    SetAside,
    leave_open,
    mark_entered,
    unchanged,
    wants_feedback,
)
from autograder.classroom.nbgrader.late_penalties import enter_late_penalties
from autograder.classroom.nbgrader.outside_kernel import without_mark
from autograder.classroom.nbgrader.wall import Wall
from autograder.classroom.status import CommandError
from autograder.host.records import SubmissionRecord
from autograder.host.report.safe_text import one_line

ROOM_BYTES = 1 << 20  # what the disk must take for the next hand-in


def enter(course: Course, graded: Mapping[HandedIn, SubmissionRecord]) -> tuple[list[SetAside], int]:
    """Enter the missing marks and make feedback; return what was set aside, and the number of hand-ins with marks."""
    ungraded = [SetAside(one, _why(record)) for one, record in graded.items() if not is_final(record)]
    sound = {one: record for one, record in graded.items() if is_final(record)}
    enter_extensions(course, {(one.assignment, one.student) for one in graded})
    there = unchanged(course, sound.items())
    if there:
        print(f"The gradebook holds {len(there)} of {len(graded)} marks already; they are left as they are.")
    with Wall(course.do) as wall:
        missing = [one for one in sound if one not in there]
        entered, refused = _each(course, wall, "autograde", "Enter marks", missing)
        unnoted = mark_entered(course, [(one, sound[one]) for one in entered])
        still_marked = leave_open(course, [one.hand_in for one in (*ungraded, *refused)])
        reviewed = wants_feedback(course, there)
        penalised = {(one.assignment, one.student): one for one in enter_late_penalties(course, graded)}
        own = {(one.assignment, one.student) for one in graded}
        due = [one for one in graded if one in {*entered, *reviewed} or (one.assignment, one.student) in penalised]
        due += [one for key, one in penalised.items() if key not in own]  # of other notebooks
        _, without = _each(course, wall, "generate_feedback", "Feedback", due)
    aside = [*ungraded, *refused, *unnoted, *still_marked, *without]
    return aside, len(there) + len(entered)


def _why(record: SubmissionRecord) -> str:
    """Return why a record is none that can be entered."""
    return without_mark(record.exercises) or "Not graded, for no fault of the student: no exercise was graded."


def _each(
    course: Course, wall: Wall, step: str, name: str, hand_ins: Sequence[HandedIn]
) -> tuple[list[HandedIn], list[SetAside]]:
    """Run one step of nbgrader for every hand-in, one at a time, because the gradebook allows only one writer.

    Returns the hand-ins that succeeded, and those that failed.
    """
    well: list[HandedIn] = []
    failed: list[SetAside] = []
    with stage(name, len(hand_ins)) as advance:
        for one in hand_ins:
            try:
                wall.do(step, one.assignment, one.student)
                well.append(one)
            except NbgraderError as error:
                _require_room(course)
                failed.append(SetAside(one, str(error)))
            advance(f"{one_line(one.student)}, {one.assignment}")
    return well, failed


def _require_room(course: Course) -> None:
    """Raise `CommandError` if the disk takes nothing any more: then no hand-in is to blame."""
    folder = course.journal.parent
    trial = folder / f".room.{os.getpid()}"
    try:
        trial.write_bytes(b"\0" * ROOM_BYTES)
    except OSError as error:
        told = f"{folder} cannot be written ({error.strerror}); make room and run again: what was graded is kept."
        raise CommandError(told) from error
    finally:
        trial.unlink(missing_ok=True)
