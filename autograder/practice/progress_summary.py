"""The progress so far: the best practice result of every exercise, from the local history."""

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.course_settings import SettingsError, own_settings
from autograder.exercises import all_exercises
from autograder.practice.errors import WrongSettingsError
from autograder.practice.history import Attempt, attempts, hints_taken
from course_lib.show import Cell, Table

BAR_CHARACTERS = 20
COLUMNS = ("exercise", "best so far", "visible checks", "last try")


@dataclass(frozen=True)
class ExerciseProgress:
    """All attempts at one exercise, in one line."""

    id: str
    tries: int
    points: float  # the best so far, in the visible checks
    max_points: float
    last: str  # the date of the newest attempt, empty before the first
    hints: int = 0  # steps of the hint that were shown

    @property
    def share(self) -> float:
        """Return the best points over the maximum of the visible checks, 0 to 1."""
        return self.points / self.max_points if self.max_points else 0.0

    @property
    def words(self) -> str:
        """Return the result in words, e.g. `"7.5 / 12 after 3 tries, 2 hints"`."""
        hints = f", {_counted(self.hints, 'hint', 'hints')}" if self.hints else ""
        if not self.tries:
            return f"not tried yet{hints}"
        return f"{self.points:g} / {self.max_points:g} after {_counted(self.tries, 'try', 'tries')}{hints}"


@dataclass(frozen=True)
class Progress:
    """The result of `progress`; displayed as a table in a notebook and as text elsewhere."""

    exercises: tuple[ExerciseProgress, ...]

    @property
    def notebooks(self) -> dict[str, list[ExerciseProgress]]:
        """Return the exercises by the number of their notebook, in order."""
        grouped: dict[str, list[ExerciseProgress]] = {}
        for exercise in self.exercises:
            grouped.setdefault(exercise.id.split("_", 1)[0], []).append(exercise)
        return grouped

    def __str__(self) -> str:
        width = max((len(e.id) for e in self.exercises), default=0)
        lines: list[str] = []
        for notebook, exercises in self.notebooks.items():
            lines.append(f"{notebook} · {_standing(exercises)}")
            lines += [f"{e.id:{width}}  {_text_bar(e.share)}  {e.words}" for e in exercises]
        return "\n".join(lines) or "There are no exercises yet."

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<div>{''.join(_folded(*each) for each in self.notebooks.items())}</div>"


def progress() -> Progress:
    """Show the best practice result of every exercise, with the number of tries.

    Only the visible checks count here, and only those run on this machine; the course's marks come from the grader.
    Where course.toml lists the notebooks of the course, others are left out.
    """
    try:
        rules = own_settings(Path.cwd())
    except SettingsError as error:
        raise WrongSettingsError(str(error)) from None
    return Progress(summarise(attempts(), filter(rules.has, all_exercises()), hints_taken()))


def summarise(
    tried: Iterable[Attempt], ids: Iterable[str], hints: Mapping[str, int] | None = None
) -> tuple[ExerciseProgress, ...]:
    """Return one line for each of `ids`, in that order; attempts at exercises that no longer exist are left out."""
    by_id: dict[str, list[Attempt]] = {exercise: [] for exercise in ids}
    for attempt in tried:
        if attempt.exercise in by_id:
            by_id[attempt.exercise].append(attempt)
    taken = hints or {}
    return tuple(_one_line(exercise, mine, taken.get(exercise, 0)) for exercise, mine in by_id.items())


def _one_line(exercise: str, mine: list[Attempt], hints: int) -> ExerciseProgress:
    if not mine:
        return ExerciseProgress(exercise, 0, 0.0, 0.0, "", hints)
    best = max(mine, key=lambda attempt: attempt.points / attempt.max_points if attempt.max_points else 0.0)
    return ExerciseProgress(exercise, len(mine), best.points, best.max_points, mine[-1].time[:10], hints)


def _standing(exercises: list[ExerciseProgress]) -> str:
    complete = sum(e.tries > 0 and e.share == 1 for e in exercises)
    return f"{complete} of {len(exercises)} with all visible points"


def _folded(notebook: str, exercises: list[ExerciseProgress]) -> str:
    """Return one line for a notebook that unfolds to its exercises; it starts unfolded if one of them was tried."""
    share = sum(e.share for e in exercises) / len(exercises)
    rows = tuple((e.id, Cell("", _bar(e.share, e.id)), e.words, e.last) for e in exercises)
    return (
        f'<details{" open" * any(e.tries or e.hints for e in exercises)} style="margin:4px 0">'
        f'<summary style="cursor:pointer">{_bar(share, notebook)} '
        f"<strong>{html.escape(notebook)} · {_standing(exercises)}</strong></summary>"
        f'<div style="margin-left:1.2em">{Table(COLUMNS, rows)._repr_html_()}</div></details>'
    )


def _bar(share: float, name: str) -> str:
    return f'<progress value="{share:.3f}" max="1" aria-label="{html.escape(name)}"></progress>'


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}"


def _text_bar(share: float) -> str:
    filled = round(BAR_CHARACTERS * share)
    return "█" * filled + "·" * (BAR_CHARACTERS - filled)
