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
    of_the_cell: float  # its share of all points of the exercise, hidden ones included

    def __new__(cls, record: ExerciseRecord, notes: Sequence[str] = (), *, points: float | None = None) -> Self:
        """A score of ``record.points``; ``notes`` are sentences to show below the marks.

        ``points`` are those of the whole exercise, by default of its visible checks.
        """
        score = super().__new__(cls, record.points)
        score.record, score.notes = record, tuple(notes)
        share = record.points / record.max_points if record.max_points else 0.0
        score.of_the_cell = share * (record.max_points if points is None else points)
        return score

    def __str__(self) -> str:
        return exercise_text(self.record, notes=self.notes)

    def _repr_html_(self) -> str:
        return exercise_html(self.record, notes=self.notes)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython prints: the report, but a bare number where nbgrader reads it back.

        Its Validate button calls a cell failed that shows fewer points than the cell has, and those include hidden
        ones: so an answer that passes all that can be seen shows them all there. It gives no marks.
        """
        printer.text(repr(self.of_the_cell) if "NBGRADER_EXECUTION" in os.environ else str(self))

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)
