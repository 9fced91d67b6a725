"""Write a new exercise into this checkout: a trivial one that passes all tests, as a template for a real one.

It consists of the visible module, the hidden module, two answers of known marks, five cells before the summary of the
lesson's notebook, and its lines in the demonstration's class. Either all files are written, or none.
"""

import builtins
import json
import keyword
import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from autograder.classroom.nbgrader.markers import with_solutions
from autograder.classroom.status import UsageError
from autograder.exercises.lessons import LESSONS, exercise_id

CHECKOUT = Path(__file__).parents[2]
TEXTS = Path(__file__).parent / "exercise_texts"
Cell = dict[str, Any]  # of a notebook, as it stands in the file
POINTS = 2
MISTAKES = {"value": "the input is left out", "callable": "a sum"}
"""For each kind of trivial exercise, the name of its second answer of known marks, which earns 0 points."""

_ID = re.compile(r"(\d\d)_([a-z][a-z0-9]*(?:_[a-z0-9]+)*)")
_MIXED = "mistaken/some_of_each.py"
_RIGHT = ("honest/as_taught.py", "mistaken/untidy.py")


@dataclass(frozen=True)
class NewExercise:
    """The names in a new exercise."""

    id: str
    name: str
    lesson: str
    kind: str

    @property
    def mistake(self) -> str:
        """Return the name of the second answer of known marks."""
        return MISTAKES[self.kind]

    @property
    def number(self) -> str:
        """Return the number of the lesson, such as `04`."""
        return self.id[:2]

    @property
    def notebook(self) -> Path:
        """Return the path of the lesson's notebook in the checkout."""
        stem = f"{self.number}_{self.lesson}"
        return Path("notebooks", stem, f"{stem}.ipynb")

    def text(self, template: str) -> str:
        """Return one of the texts in `exercise_texts`, filled with the names of this exercise."""
        words = self.name.replace("_", " ")
        names = {"number": self.number, "name": self.name, "lesson": self.lesson, "words": words}
        filled = Template((TEXTS / self.kind / f"{template}.txt").read_text("utf-8"))
        return filled.substitute(names, title=words.capitalize(), mistake=self.mistake)


def write_exercise(asked: str, kind: str = "value", checkout: Path = CHECKOUT) -> tuple[Path, ...]:
    """Write the exercise with the id `asked`, such as `04_count_nodes`; return the paths of the files in `checkout`.

    `kind` is a key of `MISTAKES`. Raises `UsageError` before writing if the id or the checkout cannot be used.
    """
    exercise = _exercise(asked, kind, checkout)
    contents = {**_new_files(exercise), **_changed_files(exercise, checkout)}
    _require_committed([path for path in contents if (checkout / path).exists()], checkout)
    write_all({checkout / path: text for path, text in contents.items()})
    return tuple(contents)


def _exercise(asked: str, kind: str, checkout: Path) -> NewExercise:
    found = _ID.fullmatch(asked)
    if not found or keyword.iskeyword(found[2]) or hasattr(builtins, found[2]):
        raise UsageError(
            f"{asked!r} is no id for an exercise; it is the number of a lesson and a name for a function that Python "
            "does not have yet, in small letters, as '04_count_nodes'."
        )
    number, name = found.groups()
    if int(number) not in LESSONS:
        last = max(LESSONS)
        raise UsageError(f"there is no lesson {number} with exercises; the last one is {last:02d}_{LESSONS[last]}.")
    exercise = NewExercise(asked, name, LESSONS[int(number)], kind)
    assert exercise_id(f"{exercise.lesson}.{name}") == asked
    if not (checkout / exercise.notebook).is_file() or not (checkout / "autograder/exercises/hidden").is_dir():
        raise UsageError(
            f"{exercise.notebook} and the hidden cases are not here; exercises are written in a checkout of the course."
        )
    taken = [*(checkout / "autograder").rglob(f"{name}.py"), *(checkout / "autograder").rglob(name)]
    if taken:
        raise UsageError(f"the name {name!r} is taken by {taken[0].relative_to(checkout)}; choose another one.")
    return exercise


def _new_files(exercise: NewExercise) -> dict[Path, str]:
    """Return the new files of an exercise, with their text."""
    package = Path("autograder", "exercises")
    answers = package / "hidden" / "answers" / exercise.lesson
    return {
        package / exercise.lesson / f"{exercise.name}.py": exercise.text("exercise.py"),
        package / "hidden" / exercise.lesson / f"{exercise.name}.py": exercise.text("hidden.py"),
        answers / f"{exercise.name}.py": with_solutions(exercise.text("answer.py")),
        answers / f"{exercise.name}_{exercise.mistake.replace(' ', '_')}.py": exercise.text("mistake.py"),
    }


def _changed_files(exercise: NewExercise, checkout: Path) -> dict[Path, str]:
    """Return the files that a new exercise changes, with their new text."""
    changed = {exercise.notebook: _with_cells(exercise, (checkout / exercise.notebook).read_text("utf-8"))}
    mistake = f"# %% mistake {exercise.id} = 0: {exercise.mistake}"
    solution = f"# %% solution {exercise.id} = {POINTS}"
    for name, line in ((_MIXED, mistake), *((right, solution) for right in _RIGHT)):
        path = Path("tests", "submissions", name)
        text = (checkout / path).read_text("utf-8")
        if places := list(re.finditer(rf"^# %% (\w+) {exercise.number}_.*\n(#(?! %%).*\n)*", text, re.MULTILINE)):
            *_, last = [place for place in places if place[1] != "do"]
            changed[path] = f"{text[: last.end()]}{line}\n{text[last.end() :]}"
        elif name == _MIXED:
            raise UsageError(f"{path} has no line of lesson {exercise.number}, behind which the new one could stand.")
    return changed


def _with_cells(exercise: NewExercise, text: str) -> str:
    """Return a notebook with the exercise's cells inserted before the last cell, the summary."""
    notebook = json.loads(text)
    cells = notebook["cells"]
    users = [c["id"] for c in cells if c["cell_type"] == "code" and _uses("".join(c["source"]), exercise.name)]
    new = list(_cells(exercise))
    users += [cell["id"] for cell in new if cell["id"] in {c["id"] for c in cells}]
    if users:
        raise UsageError(
            f"the name {exercise.name!r} is used by the cell {users[0]!r} of {exercise.notebook}; choose another one."
        )
    if cells[-1]["id"] != "summary":
        raise UsageError(f"{exercise.notebook} does not end with the cell 'summary', before which new cells stand.")
    notebook["cells"] = [*cells[:-1], *new, cells[-1]]
    return json.dumps(notebook, indent=1, ensure_ascii=False) + "\n"


def _uses(code: str, name: str) -> bool:
    return re.search(rf"\b{name}\b", code) is not None


def _cells(exercise: NewExercise) -> Iterator[Cell]:
    """Yield five cells: the task, the answer, a first call of the answer, its check, and a question."""
    stem = exercise.name.replace("_", "-")
    check = f'from autograder.practice import check\ncheck("{exercise.id}", {exercise.name})'
    yield _cell("markdown", f"task-{stem}", exercise.text("task.md"))
    yield _cell("code", exercise.id, exercise.text("answer.py"), _graded(exercise.id, solution=True))
    yield _cell("code", f"try-{stem}", exercise.text("attempt.py"))
    graded = {**_graded(f"{exercise.id}_check", solution=False), "points": POINTS}
    yield _cell("code", f"{exercise.id}_check", check, dict(sorted(graded.items())))
    yield _cell("markdown", f"think-{stem}", exercise.text("question.md"))


def _graded(grade_id: str, *, solution: bool) -> Cell:
    """Return nbgrader's metadata for an answer cell or a check cell."""
    return {
        "grade": not solution,
        "grade_id": grade_id,
        "locked": not solution,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }


def _cell(kind: str, cell_id: str, text: str, nbgrader: Mapping[str, Any] | None = None) -> Cell:
    """Return a cell with its keys in the order in which Jupyter stores them."""
    metadata = {"nbgrader": nbgrader} if nbgrader else {}
    cell: Cell = {"cell_type": kind, "id": cell_id, "metadata": metadata}
    cell |= {"execution_count": None, "outputs": []} if kind == "code" else {}
    return dict(sorted({**cell, "source": text.strip("\n").splitlines(keepends=True)}.items()))


def _require_committed(paths: list[Path], checkout: Path) -> None:
    """Raise if one of the files has uncommitted changes; a checkout without git passes."""
    command = ["git", "-C", str(checkout), "status", "--porcelain", "--", *map(str, paths)]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:  # git is not installed
        return
    if said:
        raise UsageError(f"{said.split()[1]} has changes that are not committed; commit them first.")


def write_all(contents: Mapping[Path, str]) -> None:
    """Write all files or none: write each one under a temporary name first, then rename them all."""
    before = {path: path.read_bytes() if path.exists() else None for path in contents}
    beside = {path: path.with_name(f".{path.name}.new") for path in contents}
    try:
        for path, text in contents.items():
            beside[path].write_text(text, "utf-8")
        for path, new in beside.items():
            new.replace(path)
    except BaseException:
        for path, content in before.items():
            if content is None:
                path.unlink(missing_ok=True)
            else:
                path.write_bytes(content)
        raise
    finally:
        for new in beside.values():
            new.unlink(missing_ok=True)
