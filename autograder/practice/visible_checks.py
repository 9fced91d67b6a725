"""Check one answer from a notebook: run the visible checks in the same sandbox as grading, and show a report.

The grader runs only imports of the set-up cell and the answer cell. Practice sends the same text, the whole cell
that defines the answer. So it detects an answer that works only because of another cell.
"""

import functools
import inspect
import linecache
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import Any, Self

from autograder.course_settings import SettingsError, own_settings
from autograder.exercises import UnknownExerciseError as NotAnExerciseError
from autograder.exercises import find
from autograder.exercises.cell_text import only_in_a_notebook
from autograder.exercises.questions import practice_seed
from autograder.host.exercise import Exercise
from autograder.host.grading import grade_exercise, untouched
from autograder.host.records import ExerciseRecord, ExerciseStatus
from autograder.host.report import exercise_html, exercise_text
from autograder.host.sandbox import Sandbox, SandboxError, open_sandbox
from autograder.practice.answer_cell import as_typed, current_shell, last_definition, text_that_counts, watch
from autograder.practice.course_trial import CourseTrial, NoTrialError
from autograder.practice.errors import (
    NoSourceError,
    NotForGradingError,
    NotGradableError,
    UnknownExerciseError,
    UnknownPlaceError,
    WrongSettingsError,
)
from autograder.practice.history import remember

NO_SANDBOX_LEVEL = 5
NOT_A_TRY = (ExerciseStatus.NOT_FOUND, ExerciseStatus.GRADER_ERROR)
HERE, COURSE = "here", "course"


class Score(float):
    """Points earned in the visible checks: a float that a notebook shows as the report and a terminal as its text."""

    record: ExerciseRecord
    notes: tuple[str, ...]
    warnings: tuple[str, ...]  # signs that the graded text is not what stands in the cell
    of_the_cell: float  # its share of all points of the exercise, including hidden ones

    def __new__(
        cls,
        record: ExerciseRecord,
        notes: Sequence[str] = (),
        *,
        warnings: Sequence[str] = (),
        points: float | None = None,
    ) -> Self:
        """Return a score of `record.points`; `warnings` and `notes` are sentences to show below the marks.

        `points` are those of the whole exercise, by default of its visible checks.
        """
        score = super().__new__(cls, record.points)
        score.record, score.notes, score.warnings = record, tuple(notes), tuple(warnings)
        share = record.points / record.max_points if record.max_points else 0.0
        score.of_the_cell = share * (record.max_points if points is None else points)
        return score

    def __str__(self) -> str:
        return exercise_text(self.record, notes=(*self.warnings, *self.notes))

    def _repr_html_(self) -> str:
        return exercise_html(self.record, notes=self.notes, warnings=self.warnings)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the report in IPython, but a bare number where nbgrader reads it back.

        nbgrader's Validate button reports a cell as failed if it shows fewer points than the cell has, including those
        of hidden checks. So an answer that passes all visible checks shows all points there. It gives no marks.
        """
        printer.text(repr(self.of_the_cell) if "NBGRADER_EXECUTION" in os.environ else str(self))

    def __reduce__(self) -> tuple[type[float], tuple[float]]:
        return float, (float(self),)


def check(exercise_id: str, answer: object, *, on: str = HERE) -> Score:
    """Run the visible checks of one exercise on the cell that defines `answer`, and show what passed and what failed.

        >>> check("01_scaled_dot_product", scaled_dot_product)
        >>> check("05_bias_silu_pass", bias_silu_pass, on="course")

    Inputs are random in each call. The result counts nowhere: marks come from the grader, which adds hidden checks.
    With `on="course"` the course's machine, which may have a GPU, runs the same checks and measures the speed. If it
    does not answer, the result is that of this machine, and a sentence says why.

    Errors: `UnknownExerciseError` for an unknown id, `NoSourceError` if `answer` is not a function you wrote,
    `NotGradableError` if its cell needs the notebook, `NotForGradingError` inside `nbgrader autograde`,
    `UnknownPlaceError` for another `on`.
    """
    if on not in (HERE, COURSE):
        raise UnknownPlaceError(f'check knows on="{HERE}" and on="{COURSE}"; it was given on={on!r}.')
    if os.environ.get("NBGRADER_EXECUTION") == "autograde":
        raise NotForGradingError(
            "check shows practice results and gives no marks; grade with the settings in nbgrader_config.py."
        )
    try:
        exercise = find(exercise_id)
    except NotAnExerciseError as error:
        raise UnknownExerciseError(str(error)) from None
    answers = _answers(exercise, answer)
    shell = current_shell()
    watch(shell)
    answers[exercise.id], warnings = text_that_counts(exercise.id, exercise.entry_point, answers[exercise.id], shell)
    nothing = untouched(exercise, answers)
    if nothing is not None:  # without opening a sandbox, which takes a second or two
        notes = (*_hint_note(exercise, nothing), *_hidden_note(exercise))
        return Score(nothing, notes, warnings=warnings, points=exercise.points)
    if on == COURSE and "NBGRADER_EXECUTION" not in os.environ:
        return _checked_on_course(exercise, answers, warnings)
    return _checked_here(exercise, answers, warnings)


def _checked_here(exercise: Exercise, answers: Mapping[str, str], warnings: Sequence[str]) -> Score:
    sandbox = _sandbox()
    record = grade_exercise(exercise, answers, sandbox=sandbox, seed=practice_seed(exercise.id), show_speed=True)
    if record.status not in NOT_A_TRY:
        remember(record)
    notes = (*_hint_note(exercise, record), *_hidden_note(exercise), *_sandbox_note(sandbox))
    return Score(record, notes, warnings=warnings, points=exercise.points)


def _checked_on_course(exercise: Exercise, answers: Mapping[str, str], warnings: Sequence[str]) -> Score:
    """Check here while the course's machine works, and return its result, or the one from here with the reason."""
    with CourseTrial(exercise.id, answers) as trial:
        here = _checked_here(exercise, answers, warnings)
        try:
            reply = trial.wait()
        except NoTrialError as error:
            told = f"{error} This is the check on your machine."
            return Score(here.record, here.notes, warnings=(*warnings, told), points=exercise.points)
    assert reply.record is not None, "wait raises if there is none"
    notes = (reply.sentence, *_hint_note(exercise, reply.record), *_hidden_note(exercise))
    return Score(reply.record, notes, warnings=warnings, points=exercise.points)


@functools.cache
def _sandbox() -> Sandbox:
    """Return the strongest isolation here, probed once; if there is none, the code runs without isolation.

    Answers compute on the device that course.toml names; see `autograder.course_settings`.
    """
    try:
        chosen = own_settings(Path.cwd())
        return open_sandbox(trust=True, device=chosen.device, measured=chosen.measured)
    except (SettingsError, SandboxError) as error:
        raise WrongSettingsError(str(error)) from None


def _answers(exercise: Exercise, answer: object) -> dict[str, str]:
    """Return the text of the answer's cell, and of the exercises it needs, as far as this session has run them."""
    shell = current_shell()
    try:
        answers = {exercise.id: as_typed(cell_source(answer), shell)}
    except NoSourceError:
        require_gradable(last_definition(exercise.entry_point, shell))  # a command such as %%time keeps no text
        raise
    require_gradable(answers[exercise.id])
    session = vars(sys.modules["__main__"])
    for needed in exercise.needs:
        try:
            answers[needed] = as_typed(cell_source(session.get(find(needed).entry_point)), shell)
        except NoSourceError:
            continue  # the answer fails on the missing name, and the report gives the name
    return answers


def _hint_note(exercise: Exercise, record: ExerciseRecord) -> list[str]:
    """Return a sentence on how to get hints, once a check failed."""
    if not exercise.hints or record.status in NOT_A_TRY or record.points == record.max_points:
        return []
    return [f'Stuck? `hint("{exercise.id}")` tells what to look at (`from autograder.practice import hint`).']


def _hidden_note(exercise: Exercise) -> list[str]:
    """Return one sentence on the hidden checks: categories if this installation has them, else only points."""
    if exercise.hidden_points <= 0:
        return []
    hidden = (c.category for c in find(exercise.id, hidden=True).checks if c.hidden)
    about = ", ".join(dict.fromkeys(hidden))
    topics = f" on {about}" if about else ", on cases not shown here"
    return [f"Grading adds hidden checks worth {exercise.hidden_points:g} points{topics}."]


def _sandbox_note(sandbox: Sandbox) -> list[str]:
    if sandbox.level < NO_SANDBOX_LEVEL:
        return []
    return ["There is no sandbox here, so your code ran unprotected: fine for your own code, not for anyone else's."]


def cell_source(answer: object) -> str:
    """Return the source of the cell or module that defines the function or class `answer`.

    IPython keeps the text of each executed cell in `linecache` under a file name of its own, which the function's code
    object stores. Raise `NoSourceError` for anything other than a function or class, and if no text was kept.
    """
    code = _code_of(answer)
    if code is None:
        given = "None" if answer is None else f"an object of type {type(answer).__name__}"
        raise NoSourceError(
            f"check needs the function you wrote, without brackets; it was given {given}. "
            'Write check("exercise_id", your_function).'
        )
    source = "".join(linecache.getlines(code.co_filename))
    if not source:
        raise NoSourceError(
            f"The text of {code.co_name} was not kept by this Python session. "
            "Define it in a notebook cell or in a file, run that, and call check again."
        )
    return source


def require_gradable(text: str) -> None:
    """Raise `NotGradableError` for a cell with % or ! commands, or with a call of `check` or `hint`."""
    if why := only_in_a_notebook(text):
        raise NotGradableError(why)


def _code_of(answer: object) -> CodeType | None:
    """Return the code object whose file name leads to the text; for a class, that of its first function."""
    if isinstance(answer, functools.partial):
        return _code_of(answer.func)
    if isinstance(answer, type):
        bodies = (_code_of(member) for member in vars(answer).values() if inspect.isroutine(member))
        return next((code for code in bodies if code is not None), None)
    answer = getattr(answer, "_init_fn", answer)  # of an operator of torch.library, the function below its decorator
    answer = inspect.unwrap(answer) if callable(answer) else answer
    code: Any = getattr(answer, "__code__", None)
    return code if isinstance(code, CodeType) else None
