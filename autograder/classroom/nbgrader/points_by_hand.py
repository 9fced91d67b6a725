"""Add the points that a person gave in Formgrader to the records of a class, for its report.

An exercise with `by_hand` points has an answer cell that nbgrader calls manually graded. Its points are entered in
Formgrader and lie in the gradebook only, where nbgrader's export and feedback read them. The report is made of records.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from nbgrader.api import Gradebook, MissingEntry

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.report.attention import Attention, Urgency
from autograder.exercises import all_exercises, find
from autograder.host.records import (
    WITHOUT_MARK,
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    SubmissionRecord,
)

READ = "read by a person, by the rubric"
CATEGORY = "by a person"


def with_points_by_hand(
    course: Course, records: Iterable[SubmissionRecord], dropped: Collection[str] = ()
) -> tuple[tuple[SubmissionRecord, ...], list[Attention]]:
    """Return the records with what a person gave, and an entry for each answer that nobody has read yet.

    `dropped` names exercises whose points do not count. An answer that nobody has read has neither points nor a maximum
    for it. One that was left as released gets 0.
    """
    done: list[SubmissionRecord] = []
    unread: list[Attention] = []
    with course.gradebook() as gradebook:
        for record in records:
            exercises = []
            for one in record.exercises:
                has_none = one.status in WITHOUT_MARK or one.id in dropped or one.id not in all_exercises()
                most = 0.0 if has_none else find(one.id).by_hand
                given, waits = _given(gradebook, record, one) if most else (None, False)
                exercises.append(one if given is None else _with(one, min(max(given, 0.0), most), most))
                if waits:
                    sentence = (
                        f"{most:g} points are for a person: read it in Formgrader, which shows the rubric above it."
                    )
                    unread.append(Attention(Urgency.MUST, record.student, one.id, sentence))
            done.append(replace(record, exercises=tuple(exercises)))
    return tuple(done), unread


def _given(gradebook: Gradebook, record: SubmissionRecord, exercise: ExerciseRecord) -> tuple[float | None, bool]:
    """Return the points of an answer cell, or None without any, and whether a person has to read it."""
    name = record.assignment
    try:
        grade = gradebook.find_grade(exercise.id, name, name, record.student)
    except MissingEntry:
        return None, False  # the hand-in was set aside, and the report says so
    given = grade.auto_score if grade.manual_score is None else grade.manual_score
    return given, bool(grade.needs_manual_grade)


def _with(exercise: ExerciseRecord, points: float, most: float) -> ExerciseRecord:
    status = CheckStatus.PASSED if points == most else CheckStatus.FAILED
    check = CheckRecord(READ, CATEGORY, hidden=False, status=status, points=points, max_points=most)
    return replace(
        exercise,
        points=exercise.points + points,
        max_points=exercise.max_points + most,
        checks=(*exercise.checks, check),
    )
