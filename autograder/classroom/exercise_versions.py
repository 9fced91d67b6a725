"""State what an exercise's marks depend on: its code, its points, the grader's engine, and PyTorch.

Each record keeps this statement. Where it differs from the present one, the record is of an older exercise, and a class
report says so. Nothing is graded again before a person has seen what would change.

Code is compared as a syntax tree, so comments, docstrings and the layout of lines change nothing.
"""

import ast
import functools
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import version
from pathlib import Path

from autograder.classroom.report.attention import Attention, Urgency
from autograder.exercises import all_exercises, find, of_assignment
from autograder.exercises.lessons import PACKAGE, module_name
from autograder.host.records import GRADER_VERSION, ExerciseRecord, SubmissionRecord
from autograder.host.source_text import tree_of

EXERCISE, POINTS, TORCH, GRADER = "exercise", "points", "torch", "grader"
"""The parts of a statement: the exercise's code as a digest, its points, the versions of PyTorch and of the grader."""

_ROOT = Path(__file__).parents[2]
_CHECKS = "autograder/host/checks"
_SHARED = (f"{PACKAGE}.", "autograder.host.checks.")  # whose code is part of an exercise that imports it
_ENGINE = ("autograder/host", "autograder/worker", "autograder/protocol", "course_lib")
# these find an exercise, and hold nothing of it that is not compared here
_LOOKUP = {f"{PACKAGE}.{name}" for name in ("lessons", "questions", "registry", "setup_cells")}
_DIGITS = 12


@functools.cache
def version_of(exercise_id: str) -> Mapping[str, str]:
    """Return the present statement for an exercise; raises `UnknownExerciseError` if it does not exist.

    >>> version_of("00_read_a_table")
    {'exercise': '5b0f3c1d9a77', 'points': '3', 'torch': '2.13.0', 'grader': '0.1.0+8d21e0c4b6f3'}
    """
    exercise = find(exercise_id, hidden=True)
    modules = _imported({module_name(exercise_id), module_name(exercise_id, hidden=True)})
    trees = (f"{name} {_tree(path)}" for name, path in sorted(modules.items()))
    return {
        EXERCISE: _digest([exercise.setup, *trees]),
        POINTS: f"{exercise.points:g}",
        TORCH: version("torch").partition("+")[0],  # what follows names the device, which may differ in a cluster
        GRADER: f"{GRADER_VERSION}+{_engine()}",
    }


def version_of_assignment(assignment: str) -> str:
    """Return one digest of the statements for all exercises of a notebook."""
    return _digest(repr(sorted(version_of(name).items())) for name in of_assignment(assignment))


def changes(record: ExerciseRecord) -> dict[str, tuple[str, str]]:
    """Return the parts in which a record's statement differs from the present one: its value and the present value.

    An exercise that does not exist any more has none, and a record without a statement differs in every part.
    """
    if record.id not in all_exercises():
        return {}
    present = version_of(record.id)
    return {
        part: (record.version.get(part, ""), now) for part, now in present.items() if record.version.get(part) != now
    }


def out_of_date(records: Iterable[SubmissionRecord]) -> Iterator[Attention]:
    """Yield an entry for each exercise, or each notebook, of which there are records of an older version."""
    counts: Counter[tuple[str, str]] = Counter()
    for record in records:
        missing = set(of_assignment(record.assignment)) - {one.id for one in record.exercises}
        found = {(name, f"without {name}") for name in missing}
        for one in record.exercises:
            found |= {_reason(record.assignment, one.id, changed) for changed in [changes(one)] if changed}
        counts.update(found)
    for (where, reason), count in sorted(counts.items()):
        subject, whose = ("1 record is", "1 hand-in") if count == 1 else (f"{count} records are", f"{count} hand-ins")
        sentence = f"{subject} {reason}: `autograder regrade {where}` shows what would change."
        yield Attention(Urgency.SHOULD, whose, where, sentence)


def _reason(assignment: str, exercise_id: str, changed: Mapping[str, tuple[str, str]]) -> tuple[str, str]:
    """Return what is to be graded again, and the words about the records that are older."""
    if changed.get(EXERCISE, ("", ""))[0] or changed.get(POINTS, ("", ""))[0]:
        return exercise_id, f"of an older {exercise_id}"
    if EXERCISE in changed:
        return assignment, "of an unknown version, from before versions were kept"
    said = " and ".join(f"{name} {before} ({now} is here)" for name, (before, now) in sorted(changed.items()))
    return assignment, f"made with {said}"


def _imported(start: Iterable[str]) -> dict[str, Path]:
    """Return the modules in `start` and what they import of the exercises' code, directly or not, with their files."""
    found: dict[str, Path] = {}
    waiting = list(start)
    while waiting:
        name = waiting.pop()
        path = _file(name)
        if path is not None and name not in found and name not in _LOOKUP:
            found[name] = path
            waiting += [other for other in _imports(path) if other.startswith(_SHARED)]
    return found


def _file(module: str) -> Path | None:
    path = _ROOT.joinpath(*module.split("."))
    candidates = (path.with_suffix(".py"), path / "__init__.py")
    return next((candidate for candidate in candidates if candidate.is_file()), None)


@functools.cache
def _imports(path: Path) -> tuple[str, ...]:
    """Return the names that may be modules which a file imports."""
    names: list[str] = []
    for node in ast.walk(tree_of(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


@functools.cache
def _tree(path: Path) -> str:
    """Return a digest of a file's syntax tree."""
    texts: list[str] = []
    _collect(tree_of(path.read_text(encoding="utf-8")), texts)
    return _digest(texts)


def _collect(node: object, texts: list[str]) -> None:
    """Add the parts of a syntax tree, without docstrings and without empty fields, which versions of Python add."""
    if isinstance(node, ast.AST):
        texts.append(type(node).__name__)
        for name in node._fields:
            value = getattr(node, name, None)
            if value is not None and value != []:
                texts.append(name)
                _collect(value, texts)
    elif isinstance(node, list):
        for item in node:
            if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant)):
                _collect(item, texts)
        texts.append("end")
    else:
        texts.append(repr(node))


@functools.cache
def _engine() -> str:
    """Return a digest of the code that grades whatever the exercise, and of the library that answers import."""
    found = (path for folder in _ENGINE for path in (_ROOT / folder).rglob("*.py"))
    files = sorted(path for path in found if not path.is_relative_to(_ROOT / _CHECKS))
    return _digest(f"{path.relative_to(_ROOT)} {_tree(path)}" for path in files)


def _digest(texts: Iterable[str]) -> str:
    found = hashlib.sha256()
    for text in texts:
        found.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return found.hexdigest()[:_DIGITS]
