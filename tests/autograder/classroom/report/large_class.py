"""A class of 60 in which each student hands in most of 18 notebooks, as records."""

import random
from collections.abc import Mapping

from autograder.host.records import (
    CheckRecord,
    CheckStatus,
    ExerciseRecord,
    ExerciseStatus,
    SandboxRecord,
    SubmissionRecord,
)

STUDENTS, NOTEBOOKS, EXERCISES, CHECKS = 60, 18, 5, 7
NAMES: Mapping[str, str] = {f"s{i:03}": f"First{i} Familyname{i}" for i in range(STUDENTS)}


def large_class() -> tuple[list[SubmissionRecord], dict[str, list[str]]]:
    """Return the records of a term, and who handed in nothing by notebook."""
    draw = random.Random(0)
    records, absent = [], {}
    for n in range(NOTEBOOKS):
        name = f"{n:02}_a_notebook_of_the_course"
        there = [student for student in NAMES if draw.random() > 0.05]
        absent[name] = sorted(set(NAMES) - set(there))
        for student in there:
            exercises = tuple(_exercise(f"{n:02}_an_exercise_{e}", draw) for e in range(EXERCISES))
            records.append(
                SubmissionRecord(name, student, f"{draw.getrandbits(256):064x}", SandboxRecord(1), exercises)
            )
    return records, absent


def _exercise(name: str, draw: random.Random) -> ExerciseRecord:
    checks = tuple(_check(i, draw.random() < 0.7) for i in range(CHECKS))
    points = sum(check.points for check in checks)
    return ExerciseRecord(name, "graph", points, float(CHECKS), ExerciseStatus.GRADED, "", checks)


def _check(index: int, passed: bool) -> CheckRecord:
    status = CheckStatus.PASSED if passed else CheckStatus.FAILED
    message = (
        "" if passed else f"The pass left {index} calls in the graph; expected none: replace each match, not the first."
    )
    return CheckRecord(
        f"what the check number {index} looks at",
        "programs of other shapes",
        index > 2,
        status,
        float(passed),
        1.0,
        message,
    )
