"""A student can foresee a mark: `check` and the task show what can cost much, and points are few round numbers."""

import json
from pathlib import Path

import pytest

from autograder.exercises import all_exercises, find
from autograder.exercises.quality.foreseen_marks import LEAST_SHARE, unforeseen
from autograder.exercises.registry import hidden_part
from autograder.host.exercise import Control
from autograder.host.records import CheckRecord, CheckStatus, ExerciseRecord, ExerciseStatus
from autograder.host.value_cap import REFUSALS, is_limited

COURSE = Path(__file__).parents[3]
CHOSEN = {0.25, 0.5, 1, 1.5, 2, 3, 4, 5}
STEP = {"17_optimise_step": {10, 20, 45}}  # the capstone's step has three checks, one for each kind of model


def task_of(exercise_id: str) -> str:
    """Return the text cell before an answer, as one line."""
    (path,) = (COURSE / "notebooks").glob(f"{exercise_id[:2]}_*/*.ipynb")
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return " ".join("".join(cells[[c["id"] for c in cells].index(exercise_id) - 1]["source"]).split())


TRAPS = [(each, control) for each in all_exercises() for control in hidden_part(each).controls if control.trap]


@pytest.mark.parametrize(("exercise_id", "control"), TRAPS, ids=[f"{e}: {c.name}" for e, c in TRAPS])
def test_a_trap_that_costs_much_is_named_in_the_task(exercise_id, control):
    assert control.trap in task_of(exercise_id)
    assert control.marks < LEAST_SHARE * find(exercise_id).points


def test_what_a_pass_must_leave_alone_has_a_visible_program_in_each_category():
    unseen = {}
    for each in all_exercises():
        checks = find(each, hidden=True).checks
        if is_limited(find(each).kind, (check.category for check in checks)):
            seen, hidden = ({c.category for c in checks if c.hidden == side} for side in (False, True))
            unseen[each] = (hidden & REFUSALS) - seen
    assert {each: found for each, found in unseen.items() if found} == {}


def test_points_of_checks_are_few_numbers_that_a_person_would_choose():
    points = {(each, check.name): check.points for each in all_exercises() for check in find(each, hidden=True).checks}
    odd = {name: number for name, number in points.items() if number not in CHOSEN | STEP.get(name[0], set())}
    assert odd == {}
    assert min(points.values()) >= 0.25


def record_of(*checks: tuple[bool, float]) -> ExerciseRecord:
    """Return a record of checks of one point each, given whether each is hidden and what it got."""
    made = tuple(
        CheckRecord(f"check {i}", "values", hidden, CheckStatus.PASSED, points, 1.0, "")
        for i, (hidden, points) in enumerate(checks)
    )
    points = sum(check.points for check in made)
    return ExerciseRecord("07_sample", "value", points, float(len(made)), ExerciseStatus.GRADED, "", made)


SEEN, HIDDEN, LOST = (False, 1.0), (True, 1.0), (True, 0.0)


@pytest.mark.parametrize(
    ("checks", "trap", "surprises"),
    [
        ((SEEN, SEEN, LOST), "", True),
        ((SEEN, SEEN, LOST), "Zero is a length, too.", False),
        ((SEEN, (False, 0.5), LOST), "", False),
        ((SEEN, SEEN, HIDDEN, HIDDEN, LOST), "", False),
    ],
)
def test_a_mark_surprises_if_all_visible_checks_passed_and_much_is_lost(checks, trap, surprises):
    said = unforeseen(Control("a mistake", "", 0, trap=trap), record_of(*checks))
    assert bool(said) == surprises
