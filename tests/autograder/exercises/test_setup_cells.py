"""An answer may use every name that its set-up cell imports; for a masked one the message says so."""

from itertools import groupby

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.lessons import LESSONS, lesson_of
from autograder.exercises.setup_cells import SETUP_CELLS
from autograder.host.exercise import Exercise
from autograder.host.grading import graded_parts
from autograder.host.sandbox import open_sandbox
from autograder.host.session import AnswerFailedError, Session
from autograder.host.setup_imports import absent_names, imports
from autograder.protocol.requests.loads import LoadAnswer, Part
from tests.autograder.exercises.judged import judged, reference
from tests.drawn import some


def _of_each_mask() -> list[str]:
    """One exercise for each lesson and each list of masked packages."""
    every = sorted((find(each) for each in all_exercises()), key=lambda e: (e.assignment, e.masked))
    return [next(alike).id for _, alike in groupby(every, key=lambda e: (e.assignment, e.masked))]


def _load(exercise: Exercise, answer: str) -> None:
    """Load an answer in a worker; raises `AnswerFailedError` if it raises there."""
    parts = tuple(Part(name, text) for name, text in graded_parts(exercise, {exercise.id: answer}).items())
    load = LoadAnswer(exercise.kind.value, exercise.entry_point, parts)
    absent = absent_names(exercise.setup, exercise.masked)
    session = Session(open_sandbox(), load, masked=exercise.masked, absent=absent)
    try:
        assert session.worker_pid
    finally:
        session.close()


def test_every_lesson_has_the_imports_of_its_set_up_cell() -> None:
    assert set(SETUP_CELLS) == set(LESSONS.values())
    assert all(find(each).setup == SETUP_CELLS[lesson_of(each)] for each in all_exercises())


@pytest.mark.parametrize("exercise_id", some(_of_each_mask(), 5, name="masks"))
def test_every_name_of_the_set_up_cell_is_there_or_said_to_be_masked(exercise_id: str) -> None:
    exercise = find(exercise_id)
    absent = absent_names(exercise.setup, exercise.masked)
    there = [each.name for each in imports(exercise.setup) if each.name not in absent]
    define = f"def {exercise.entry_point}(*_, **__): pass\n"
    _load(exercise, define + "\n".join(there))
    named = {package: [name for name in absent if absent[name] == package] for package in absent.values()}
    tried = [name for package, names in named.items() for name in some(names, 1, name=f"{exercise_id} {package}")]
    for name, package in ((name, absent[name]) for name in tried):  # not all names, for each starts a worker
        with pytest.raises(AnswerFailedError) as failed:
            _load(exercise, f"{define}{name}")
        assert f"from `{package}`, which" in failed.value.message


@pytest.mark.parametrize(
    ("exercise_id", "use"),
    [("02_read_a_trace", "list(pairwise([1, 2]))"), ("02_annotate", "suppress(KeyError)"), ("05_fold_affine", "copy")],
)
def test_an_answer_that_uses_a_name_of_the_set_up_cell_keeps_its_points(exercise_id: str, use: str) -> None:
    record = judged(exercise_id, f"{reference(exercise_id)}\n{use}\n", hidden=False)
    assert record.points == record.max_points, record.message


def test_a_name_that_only_the_notebook_has_is_explained() -> None:
    record = judged("02_annotate", "def run_with_ranges(program): return elsewhere", hidden=False)
    assert "must be in the answer cell" in record.checks[0].message
