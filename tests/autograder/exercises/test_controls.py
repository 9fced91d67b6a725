"""Every exercise proves itself: its own controls get the marks they state, whatever the secret seed.

The seed is another one in each run, and one for all controls: what the host makes of its own questions,
such as Inductor's code for programs that it drew, is then made once for all controls of an exercise.

A run tries one control of every exercise, drawn anew: of a third of them the reference, of the others another one. The
references of these answer in their notebooks (`tests/notebooks/test_execution.py`). WHOLE=1 tries all, and so does
`autograder quality`, with the standard ones, of which test_survey.py tries a sample.
"""

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.controls import controls
from autograder.exercises.quality.foreseen_marks import unforeseen
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import Control
from autograder.host.grading import graded_parts
from autograder.host.judge import judge
from autograder.host.sandbox import open_sandbox
from tests.drawn import chance, some
from tests.references import JUDGED


def tried(exercise_id: str) -> list[Control]:
    """The reference solution, if it is its turn, or else one of the other controls; with WHOLE=1 all."""
    own = hidden_part(exercise_id).controls
    reference, others = ([c for c in own if (c.name == "reference") == is_it] for is_it in (True, False))
    is_its_turn = exercise_id in JUDGED
    return [*reference * is_its_turn, *some(others, min(0 if is_its_turn else 1, len(others)), name=exercise_id)]


CONTROLS = [(exercise, control) for exercise in all_exercises() for control in tried(exercise)]
SEED = chance("controls").getrandbits(63)


@pytest.mark.parametrize(("exercise_id", "control"), CONTROLS, ids=[f"{e}: {c.name}" for e, c in CONTROLS])
def test_a_control_gets_exactly_its_marks(exercise_id, control):
    exercise = find(exercise_id, hidden=True)
    parts = graded_parts(exercise, {exercise_id: control.answer})
    record = judge(exercise, parts, sandbox=open_sandbox(), seed=SEED)
    wrong = [f"{c.name}: {c.points:g} of {c.max_points:g} {c.message}" for c in record.checks]
    assert control.passes(record.points), f"seed {SEED}, {record.status}: {record.message}\n" + "\n".join(wrong)
    assert record.max_points == exercise.points
    assert unforeseen(control, record) == "", "\n".join(wrong)


@pytest.mark.parametrize("exercise_id", all_exercises())
def test_visible_and_hidden_checks_add_up_to_the_points_of_the_cell(exercise_id):
    exercise = find(exercise_id, hidden=True)
    assert sum(c.points for c in exercise.checks) == pytest.approx(exercise.points)
    assert 0.5 <= 1 - exercise.hidden_points / exercise.points <= 0.7


@pytest.mark.parametrize("exercise_id", all_exercises())
def test_every_exercise_has_controls_that_pass_and_controls_that_fail(exercise_id):
    marks = {c.marks for c in controls(exercise_id)}
    assert 0 in marks
    assert find(exercise_id).points in marks


@pytest.mark.parametrize("exercise_id", all_exercises())
def test_names_of_checks_are_unique_since_their_random_streams_follow_from_them(exercise_id):
    names = [c.name for c in find(exercise_id, hidden=True).checks]
    assert len(set(names)) == len(names)
