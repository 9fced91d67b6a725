"""No exercise is passed by the answer to another one; see `benchmarks.grading.exchanged_answers`."""

import pytest

from autograder.exercises import all_exercises, find
from autograder.host.sandbox import open_sandbox
from benchmarks.grading.exchanged_answers import PASSED, exchange
from tests.drawn import chance, some


@pytest.mark.parametrize("exercise_id", some(all_exercises(), 8, name="exercises"))
def test_the_solution_of_another_does_not_pass(exercise_id):
    """One of the same kind, whose answers have the right form; one of any kind where there is no other."""
    asked, draw = find(exercise_id), chance(f"exchanged {exercise_id}")
    others = [e for e in all_exercises() if e != exercise_id]
    other = draw.choice([e for e in others if find(e).kind is asked.kind] or others)
    found = exchange(exercise_id, other, open_sandbox(), seed := draw.getrandbits(63))
    assert found.share < PASSED, f"the solution of {other} got {found.points:g} of {found.of:g}, seed {seed}"


def test_the_solution_of_the_exercise_itself_would_pass():
    """So the exchange itself is not what fails."""
    assert exchange("05_bias_silu_pass", "05_bias_silu_pass", open_sandbox()).share == 1
