"""Take the points that a person gave in Formgrader over into the records of a class, for its report.

An exercise with `by_hand` points has an answer cell that nbgrader calls manually graded. Its points are entered in
Formgrader and lie in the gradebook only, where nbgrader's export and feedback read them. So does a mark that a person
gave in place of the grader's. The report is made of records, and shows what the gradebook has.
"""

from collections.abc import Collection, Iterable
from dataclasses import replace

from nbgrader.api import Grade, Gradebook, MissingEntry

from autograder.classroom.nbgrader.course import Course
from autograder.classroom.report.attention import Attention, Urgency
from autograder.exercises import all_exercises, find
from autograder.exercises.answer_cells import CHECK
from autograder.host.records import (
    WITHOUT_MARK,
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    SubmissionRecord,
)
from autograder.host.report.wording import number

READ = "read by a person, by the rubric"
CATEGORY = "by a person"


def with_points_by_hand(
    course: Course, records: Iterable[SubmissionRecord], dropped: Collection[str] = ()
) -> tuple[tuple[SubmissionRecord, ...], list[Attention]]:
    """Return the records with what a person gave, and an entry for each answer that nobody has read yet.

    `dropped` names exercises whose points do not count. An answer that is not read yet has neither points nor a maximum
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


def with_changed_marks(
    course: Course, records: Iterable[SubmissionRecord]
) -> tuple[tuple[SubmissionRecord, ...], list[Attention]]:
    """Return the records with the marks that a person gave in place of the grader's, and an entry for each.

    If a hand-in was graded again since, its entry says that a person must decide: the mark is for an earlier grading.
    """
    with course.gradebook() as gradebook:
        entered = (Grade.manual_score.isnot(None)) | (Grade.extra_credit.isnot(None))
        grades = gradebook.db.query(Grade).filter(entered).all()
        changed = {(g.assignment.name, g.student.id, g.name): g for g in grades if g.max_score}
        done: list[SubmissionRecord] = []
        told: list[Attention] = []
        for record in records:
            exercises = []
            for one in record.exercises:
                grade = changed.get((record.assignment, record.student, f"{one.id}{CHECK}"))
                if grade is not None and one.status not in WITHOUT_MARK:
                    told.append(_entry(record, one, grade))
                    one = _as_given(one, grade)
                exercises.append(one)
            done.append(replace(record, exercises=tuple(exercises)))
    return tuple(done), told


def _entry(record: SubmissionRecord, exercise: ExerciseRecord, grade: Grade) -> Attention:
    given, own = number(round(grade.score, 4)), number(round(exercise.points, 4))
    if grade.needs_manual_grade:
        sentence = f"A person gave {given} for an earlier grading, which counts; the grader gives {own} now."
        return Attention(Urgency.MUST, record.student, exercise.id, sentence)
    sentence = f"A person gave {given} in place of {own}."
    return Attention(Urgency.COULD, record.student, exercise.id, sentence)


def _as_given(exercise: ExerciseRecord, grade: Grade) -> ExerciseRecord:
    points = min(max(grade.score, 0.0), grade.max_score)  # with extra credit it may be more than the maximum
    return replace(exercise, points=points, max_points=grade.max_score, cap="A person gave these points.")


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
