"""Grade one exercise on the answers of its notebook."""

import ast
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from autograder.host.exercise import Exercise
from autograder.host.judge import judge, not_found
from autograder.host.records import ExerciseRecord
from autograder.host.sandbox import Sandbox
from autograder.host.setup_imports import used_setup
from autograder.host.source_text import UnreadableSourceError, parsed

STUB_CHARACTERS = 20_000


def new_seed() -> int:
    """Return a secret seed for one grading."""
    return secrets.randbits(63)


def grade_exercise(
    exercise: Exercise, answers: Mapping[str, str], *, sandbox: Sandbox, seed: int, show_speed: bool = False
) -> ExerciseRecord:
    """Grade one exercise on the answers of its notebook; `show_speed` measures speed even if it earns no points."""
    nothing = untouched(exercise, answers)
    if nothing is not None:
        return nothing
    return judge(exercise, graded_parts(exercise, answers), sandbox=sandbox, seed=seed, show_speed=show_speed)


def graded_parts(exercise: Exercise, answers: Mapping[str, str]) -> dict[str, str]:
    """Return what the worker runs, in order: imports of the set-up cell, the answers that this one needs, the answer.

    Each text has its name. An import is left out if no answer names it, or if the exercise masks its package.
    """
    cells = {f"answer {each}": answers[each] for each in (*exercise.needs, exercise.id) if each in answers}
    return {"setup": used_setup(exercise.setup, exercise.masked, cells.values()), **cells}


def untouched(exercise: Exercise, answers: Mapping[str, str]) -> ExerciseRecord | None:
    """Return the record of an answer that is missing or still the stub, without starting a worker; else None."""
    text = answers.get(exercise.id)
    if text is None:
        return not_found(
            exercise,
            f"The notebook has no answer cell for {exercise.id}: it was deleted, renamed, or added after your copy.",
        )
    if stubs_in(text).leave_unanswered(exercise.entry_point):
        return not_found(exercise, "Not answered yet.")
    return None


@dataclass(frozen=True)
class Stubs:
    """What a cell holds of the released stubs that raise NotImplementedError."""

    definitions: Mapping[str, bool]  # of each function and class: whether its name is still that of a stub
    only: bool  # the cell holds nothing else of a student

    def leave_unanswered(self, entry_point: str) -> bool:
        """Tell whether the cell is empty, or its `entry_point` is still the stub."""
        return self.definitions.get(entry_point, self.only)


def stubs_in(text: str) -> Stubs:
    """Return what the cell holds of stubs; the text is parsed, never run, and a text too long for a stub is none."""
    try:
        statements = parsed(text, most=STUB_CHARACTERS).body  # a longer text could take all memory
    except UnreadableSourceError:
        return Stubs({}, only=False)
    definitions = dict[str, bool]()
    for statement in statements:
        definitions |= dict.fromkeys(definitions.keys() & _changed_by(statement), False)
        if isinstance(statement, _DEFINITIONS):
            definitions[statement.name] = _is_stub(statement)
    return Stubs(definitions, all(map(_is_empty, statements)))


def _changed_by(statement: ast.stmt) -> set[str]:
    """Return the names that a statement binds, or uses other than to call them, as `setattr(Layer, "forward", f)`."""
    nodes = list(ast.walk(statement))
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    used = {node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in called}
    used |= {node.asname or node.name for node in nodes if isinstance(node, ast.alias)}
    used |= {str(node.value) for node in nodes if isinstance(node, ast.Constant)}  # as globals()["f"]
    return used | {node.name for node in nodes if isinstance(node, _DEFINITIONS) and node is not statement}


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_CALL_OF_SUPER = ast.dump(ast.parse("super().__init__()", mode="eval").body)


def _is_stub(statement: ast.stmt) -> bool:
    """Tell whether a definition holds nothing of a student, and raises: a class may inherit all that it needs."""
    return _is_empty(statement) and any(isinstance(node, ast.Raise) for node in ast.walk(statement))


def _is_empty(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return all(map(_is_empty, statement.body))  # Python allows a hundred levels of blocks
    if isinstance(statement, ast.Raise):
        raised = statement.exc.func if isinstance(statement.exc, ast.Call) else statement.exc
        return isinstance(raised, ast.Name) and raised.id == "NotImplementedError"
    if isinstance(statement, ast.Expr):
        value = statement.value
        return isinstance(value, ast.Constant) or (isinstance(value, ast.Call) and ast.dump(value) == _CALL_OF_SUPER)
    return isinstance(statement, ast.Import | ast.ImportFrom | ast.Pass)
