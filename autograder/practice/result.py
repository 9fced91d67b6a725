"""The result of `check`: a number that shows itself as a report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Self

from autograder.host.records import ExerciseRecord
from autograder.host.report import exercise_html, exercise_text


class Score(float):
    """Points earned in the visible checks: a float that a notebook shows as the report and a terminal as its text."""

    record: ExerciseRecord
    notes: tuple[str, ...]

    def __new__(cls, record: ExerciseRecord, notes: Sequence[str] = ()) -> Self:
        """A score of ``record.points``; ``notes`` are sentences to show below the marks."""
        score = super().__new__(cls, record.points)
        score.record, score.notes = record, tuple(notes)
        return score

    def __str__(self) -> str:
        return exercise_text(self.record, notes=self.notes)

    def _repr_html_(self) -> str:
        return exercise_html(self.record, notes=self.notes)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints: the report, but the bare number where nbgrader reads it back."""
        printer.text(repr(self) if "NBGRADER_EXECUTION" in os.environ else str(self))

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)
