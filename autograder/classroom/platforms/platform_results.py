"""Write one record as Gradescope and Classroom 50 read it: a test for each exercise, with the student's report.

Hidden checks appear by category only, as in the report. Late penalties and points that a person gives are not in it.

- Gradescope's `results.json`: https://gradescope-autograders.readthedocs.io/en/latest/specs/
- Classroom 50's `result.json`: https://github.com/foundation50/classroom50/blob/main/schemas/result-v1.schema.json
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import UTC, datetime

from autograder.classroom.report.data import DECIMALS
from autograder.classroom.status import CommandError, UsageError
from autograder.host.records import WITHOUT_MARK, ExerciseRecord, SubmissionRecord
from autograder.host.report import exercise_text
from autograder.host.report.safe_text import one_line

FORMATS = ("gradescope", "classroom50")
HUNDREDTHS = 100  # Classroom 50 takes whole numbers; each check of the course has a whole number of hundredths
IDENTITY = {  # a field of Classroom 50, and the variable of its runner
    "classroom": "CLASSROOM",
    "assignment": "ASSIGNMENT",
    "assignment_type": "ASSIGNMENT_TYPE",
    "owner": "OWNER",
    "submission": "SUBMISSION_TAG",
    "commit": "COMMIT_URL",
    "release": "RELEASE_URL",
    "review": "REVIEW_URL",
}


class NotGradedError(CommandError):
    """An exercise has no mark, so that no platform must get one."""


def results_json(
    record: SubmissionRecord, platform: str, variables: Mapping[str, str], dropped: Collection[str] = ()
) -> str:
    """Return the file for one of `FORMATS`; `variables` are those of the process.

    The exercises in `dropped` are shown and worth nothing. Raises `NotGradedError` if an exercise has no mark, and
    `UsageError` if Classroom 50's runner set no identity.
    """
    for exercise in record.exercises:
        if exercise.status in WITHOUT_MARK:
            raise NotGradedError(f"{exercise.id} was not graded, so no result is written: {one_line(exercise.message)}")
    worth = [replace(one, points=0.0, max_points=0.0) if one.id in dropped else one for one in record.exercises]
    record = replace(record, exercises=tuple(worth))
    made = gradescope(record) if platform == "gradescope" else classroom50(record, variables)
    return json.dumps(made, indent=2, allow_nan=False)


def gradescope(record: SubmissionRecord) -> dict[str, object]:
    """Return the content of Gradescope's results.json; students see it after the due date."""
    tests = [
        {
            "name": exercise.id,
            "number": str(number),
            "score": round(exercise.points, DECIMALS),
            "max_score": round(exercise.max_points, DECIMALS),
            "output": exercise_text(exercise),
        }
        for number, exercise in enumerate(record.exercises, 1)
    ]
    notes = "\n".join(map(one_line, record.notes))
    return {
        "score": round(record.points, DECIMALS),
        "visibility": "after_due_date",
        "stdout_visibility": "hidden",
        **({"output": notes} if notes else {}),
        "tests": tests,
    }


def classroom50(record: SubmissionRecord, variables: Mapping[str, str]) -> dict[str, object]:
    """Return the content of Classroom 50's result.json, with points in hundredths."""
    missing = [name for name in IDENTITY.values() if not variables.get(name)]
    if missing:
        raise UsageError(f"{missing[0]} is not set; Classroom 50's runner sets it, so run this as its autograder.")
    tests = list(map(_classroom_test, record.exercises))
    return {
        "schema": "classroom50/result/v1",
        **{field: variables[name] for field, name in IDENTITY.items()},
        "datetime": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",  # the runner puts the time of the commit in its place
        "score": sum(_hundredths(exercise.points) for exercise in record.exercises),
        "max-score": sum(_hundredths(exercise.max_points) for exercise in record.exercises),
        "tests": tests,
    }


def _classroom_test(exercise: ExerciseRecord) -> dict[str, object]:
    return {
        "test-name": exercise.id,
        "passed": exercise.points >= exercise.max_points,
        "score": _hundredths(exercise.points),
        "max-score": _hundredths(exercise.max_points),
        "output": exercise_text(exercise),
    }


def _hundredths(points: float) -> int:
    return round(points * HUNDREDTHS)
