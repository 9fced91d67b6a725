"""Make the tables of answers that students get in place of the functions that know them; see `exercises.questions`.

The reference solution answers the visible checks for each seed, and every result of a kept function is recorded.
"""

import importlib
import warnings
from collections.abc import Iterable
from pathlib import Path

from autograder.exercises import all_exercises, find
from autograder.exercises.lessons import module_name
from autograder.exercises.quality.in_process import NotAskedError, own_answer
from autograder.exercises.questions import keeps_answers, recorded, shipped_text
from autograder.exercises.registry import hidden_part
from autograder.host.draw import Draw
from autograder.host.exercise import REFERENCE

SEEDS = 40
"""Draws of questions for each check; a check asks 2 to 30 questions of each."""


def exercises_with_tables() -> tuple[str, ...]:
    """Return the ids of the exercises whose visible checks need a table."""
    return tuple(each for each in all_exercises() if keeps_answers(importlib.import_module(module_name(each))))


def table_of(exercise_id: str, seeds: Iterable[int]) -> str:
    """Return the text of the file of one exercise, with all that its visible checks ask for these seeds."""
    part = hidden_part(exercise_id)
    assert part is not None, "only instructors make tables"
    text = next(control.answer for control in part.controls if control.name == REFERENCE)
    drawn = list(seeds)
    with warnings.catch_warnings(), recorded() as results:
        warnings.simplefilter("ignore")  # what Inductor and TorchScript think of small programs
        answer = own_answer(exercise_id, text)
        for seed in drawn:
            for check in find(exercise_id).checks:
                try:
                    check.run(answer, Draw(seed, exercise_id, check.name))
                except NotAskedError as wanted:
                    if wanted.args != ("capture",):  # a check of tensors, which asks no kept function
                        raise
    return shipped_text(drawn, results)


def write_tables(folder: Path, *, seeds: int = SEEDS) -> int:
    """Write the file of each exercise that has one into `folder`, and return their size in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    size = 0
    for exercise_id in exercises_with_tables():
        text = table_of(exercise_id, range(seeds))
        (folder / f"{exercise_id}.json").write_text(text, encoding="utf-8")
        size += len(text)
    return size
