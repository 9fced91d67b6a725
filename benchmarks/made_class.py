"""Write a class of any size to grade: notebooks with one answer each, from the controls of an exercise."""

import json
from pathlib import Path

from autograder.classroom.hand_in import HandedIn, read_hand_in
from autograder.exercises.quality.controls import controls

ROOT = Path(__file__).parents[1]


def make_class(folder: Path, exercise: str, count: int) -> list[HandedIn]:
    """Write `count` submissions of `exercise` below `folder`; the answers are its controls, in turn."""
    (notebook,) = (ROOT / "notebooks").glob(f"{exercise.split('_')[0]}_*/*.ipynb")
    assignment, answers = notebook.stem, [control.answer for control in controls(exercise)]
    made = []
    for number in range(count):
        path = folder / f"student_{number:04d}" / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        # a different text for each, since no two students hand in the same file
        path.write_text(json.dumps(_notebook(exercise, f"{answers[number % len(answers)]}\n# {number}\n")))
        made.append(read_hand_in(assignment, path.parts[-3], path).without_notebook())
    return made


def _notebook(exercise: str, answer: str) -> dict[str, object]:
    marks = {"schema_version": 3, "grade_id": exercise, "grade": False, "solution": True, "locked": False}
    cell: dict[str, object] = {"cell_type": "code", "id": "answer", "metadata": {"nbgrader": marks}, "source": answer}
    cell |= {"outputs": [], "execution_count": None}
    return {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
