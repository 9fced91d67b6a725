"""A notebook is the same with answers and without: no cell outside an exercise reads what its answer or try binds.

So one run, in which every exercise is met unanswered and is then answered, stands for both.
"""

import ast
import symtable
from pathlib import Path
from typing import Any

import nbformat
import pytest

from autograder.exercises import find

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*/*.ipynb"))
EARLIER = (
    "def explain(x):\n    return x",
    "try:\n    found = explain(1)\nexcept NotImplementedError:\n    print('none')",
)
LEANING = {
    "calls the answer": "explain(2)",
    "calls it in a function": "def twice(x):\n    return explain(explain(x))",
    "reads what an answered try leaves": "print(found)",
}
APART = {
    "binds the name itself": "found = 3\nprint(found)",
    "binds it in a function": "def twice(found):\n    return 2 * found",
}


def bound(source: str) -> set[str]:
    """Names that a cell binds."""
    symbols = symtable.symtable(source, "cell", "exec").get_symbols()
    return {s.get_name() for s in symbols if s.is_assigned() or s.is_imported() or s.is_namespace()}


def read(source: str) -> set[str]:
    """Names that a cell reads and does not bind, in its functions and classes too."""
    found, blocks = set(), [symtable.symtable(source, "cell", "exec")]
    for block in blocks:
        found |= {s.get_name() for s in block.get_symbols() if s.is_referenced() and s.is_global()}
        blocks += block.get_children()
    return found - bound(source)


def attempted(source: str) -> str:
    """What an unanswered try leaves out: its `try:`."""
    return "\n".join(ast.unparse(each) for each in ast.parse(source).body if isinstance(each, ast.Try))


def leaning(cells: list[Any]) -> dict[str, set[str]]:
    """The names that a cell reads and that an exercise has bound last, other than its own and those this one needs."""
    of_exercise = {}
    for answer in (cell for cell in cells if cell.metadata.get("nbgrader", {}).get("solution")):
        at = cells.index(answer)
        of_exercise |= dict.fromkeys((cell.id for cell in cells[at : at + 3]), answer.id)  # answer, try and check
    left_by: dict[str, str] = {}
    found = {}
    for cell in (cell for cell in cells if cell.cell_type == "code"):
        exercise = of_exercise.get(cell.id, "")
        open_to = {"", exercise, *(find(exercise).needs if exercise else ())}
        if leans := {name for name in read(cell.source) if left_by.get(name, "") not in open_to}:
            found[cell.id] = leans
        left_by |= dict.fromkeys(bound(cell.source), "")
        if exercise:
            left_by |= dict.fromkeys(bound(cell.source if cell.id == exercise else attempted(cell.source)), exercise)
    return found


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_cell_leans_on_an_exercise(path: Path) -> None:
    assert leaning(nbformat.read(path, as_version=4).cells) == {}


@pytest.mark.parametrize("case", [*LEANING, *APART])
def test_leaning_is_told_from_a_name_of_its_own(case: str) -> None:
    cells = [nbformat.v4.new_code_cell(text) for text in (*EARLIER, "check(explain)", {**LEANING, **APART}[case])]
    cells[0].update(id="00_doctor", metadata=nbformat.from_dict({"nbgrader": {"solution": True}}))
    assert list(leaning(cells)) == [cells[-1].id] * (case in LEANING)
