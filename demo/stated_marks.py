"""Compare the marks that a class got with those that it states: in the records, in the gradebook, in the CSV."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from autograder.host.records import SubmissionRecord
from demo.class_file import Member

TOLERANCE = 5e-3  # points; marks are stated with two decimals


def differences(members: Iterable[Member], records: Sequence[SubmissionRecord], marks_csv: Path) -> list[str]:
    """One sentence for each mark that differs; empty if all agree."""
    exported = read_marks(marks_csv)
    return [sentence for member in members for sentence in _of_member(member, records, exported)]


def read_marks(path: Path) -> dict[tuple[str, str], float]:
    """Marks by student and assignment from nbgrader's CSV."""
    with path.open(newline="", encoding="utf-8") as file:
        return {(row["student_id"], row["assignment"]): float(row["score"]) for row in csv.DictReader(file)}


def _of_member(
    member: Member, records: Sequence[SubmissionRecord], exported: Mapping[tuple[str, str], float]
) -> Iterator[str]:
    own = [record for record in records if record.student == member.name]
    got = {exercise.id: exercise for record in own for exercise in record.exercises}
    for name, stated in member.marks.items():
        if name not in got:
            yield f"{member.name}: {name} was not graded; stated are {stated:g} points."
        elif abs(got[name].points - stated) > TOLERANCE:
            yield f"{member.name}: {name} got {got[name].points:g} points; stated are {stated:g}. {got[name].message}"
    for record in own:
        stated_sum = sum(member.marks.get(exercise.id, 0.0) for exercise in record.exercises)
        mark = exported.get((member.name, record.assignment))
        if mark is None or abs(mark - stated_sum) > TOLERANCE:
            yield f"{member.name}: the gradebook holds {mark} for {record.assignment}; stated are {stated_sum:g}."
