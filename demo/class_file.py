"""Read one member of the demonstration's class: a Python file with answers and their expected marks.

The file is text, divided by lines that begin with `# %%`; nothing in it is run here.

    # %% answer EXERCISE = MARKS          the text below is the answer cell, and must get these marks
    # %% answer EXERCISE = MARKS, measured MARKS    the second ones where speed is measured, and not counted
    # %% split                            the answer goes on in a second cell, as after splitting a cell in JupyterLab
    # %% solution EXERCISE = MARKS        the answer cell is that of the notebook with solutions
    # %% changed EXERCISE = MARKS         the same with lines changed: below stand `#- OLD` and `#+ NEW`
    # %% mistake EXERCISE = MARKS: NAME   the answer cell is that of the exercise's control of this name
    # %% unanswered EXERCISE              the answer cell stays as it was released
    # %% do ASSIGNMENT WHAT               the notebook or its folder is damaged; see `hand_in`

Text below a solution, a mistake or an unanswered cell is a note for human readers.
"""

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from autograder.classroom.nbgrader.markers import with_solutions
from autograder.classroom.status import CommandError
from autograder.exercises.registry import hidden_part

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"

_MARK = "# %%"
_MARKS = r"(?P<exercise>\d\d_\w+) = (?P<marks>\d+(\.\d+)?)(, measured (?P<measured>\d+(\.\d+)?))?"
_ANSWER = re.compile(rf"(?P<how>answer|solution|changed) {_MARKS}")
_MISTAKE = re.compile(rf"(?P<how>mistake) {_MARKS}: (?P<name>.+)")
_UNANSWERED = re.compile(r"unanswered (?P<exercise>\d\d_\w+)")
_DO = re.compile(r"do (?P<assignment>\d\d_\w+) (?P<what>\w+)")


class ClassFileError(CommandError):
    """A file of the class has a wrong format."""


@dataclass(frozen=True)
class Member:
    """One member of the class."""

    name: str
    kind: str  # the folder: honest, mistaken or hostile
    about: str  # what it hands in, its expected result, and the reason
    answers: Mapping[str, tuple[str, ...]]  # an exercise's answer, in one cell or more
    marks: Mapping[str, float]
    damage: Mapping[str, tuple[str, ...]]  # kinds of damage by assignment
    measured: Mapping[str, float] = field(default_factory=dict)  # marks that differ where speed is measured


def read_class(folder: Path) -> tuple[Member, ...]:
    """Return all members, from `folder/KIND/NAME.py`."""
    return tuple(read_member(path) for path in sorted(folder.glob("*/*.py")))


def read_member(path: Path) -> Member:
    """Return one member; raises `ClassFileError` naming the line that is wrong."""
    text = path.read_text(encoding="utf-8")
    answers: dict[str, list[str]] = {}
    marks: dict[str, float] = {}
    measured: dict[str, float] = {}
    damage: dict[str, list[str]] = {}
    last = ""
    for head, body in _parts(text):
        if found := _ANSWER.fullmatch(head) or _MISTAKE.fullmatch(head):
            last = found["exercise"]
            answers[last], marks[last] = [_answer(path, found, body)], float(found["marks"])
            if found["measured"]:
                measured[last] = float(found["measured"])
        elif found := _UNANSWERED.fullmatch(head):
            marks[found["exercise"]], last = 0.0, ""
        elif head == "split" and last:
            answers[last].append(body)
        elif found := _DO.fullmatch(head):
            damage.setdefault(found["assignment"], []).append(found["what"])
        else:
            raise ClassFileError(f"{path.name}: '{_MARK} {head}' is none of the lines that such a file has.")
    if not answers:
        raise ClassFileError(f"{path.name}: holds no answer with marks, as '{_MARK} answer EXERCISE = MARKS'.")
    about = ast.get_docstring(ast.parse(text)) or ""
    return Member(path.stem, path.parent.name, about, _frozen(answers), marks, _frozen(damage), measured)


def _answer(path: Path, found: re.Match[str], body: str) -> str:
    try:
        if found["how"] == "mistake":
            return control(found["exercise"], found["name"])
        if found["how"] == "answer":
            return body
        return changed(solution(found["exercise"]), body if found["how"] == "changed" else "")
    except LookupError as error:
        raise ClassFileError(f"{path.name}: {error}") from error


def _frozen(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(values) for key, values in lists.items()}


def _parts(text: str) -> list[tuple[str, str]]:
    """Return the head and the text of each part; text before the first part is a comment."""
    parts = re.split(rf"^{_MARK} *(.*)\n?", text, flags=re.MULTILINE)
    return [(head.strip(), body.strip("\n")) for head, body in zip(parts[1::2], parts[2::2], strict=True)]


def solution(exercise: str, notebooks: Path = NOTEBOOKS) -> str:
    """Return the answer cell of `exercise` in the notebook with solutions; raises `LookupError` if there is none."""
    for path in sorted(notebooks.glob(f"{exercise[:2]}_*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["metadata"].get("nbgrader", {}).get("grade_id") == exercise:
                return with_solutions("".join(cell["source"]))
    raise LookupError(f"no notebook has an answer cell of {exercise}.")


def changed(text: str, changes: str) -> str:
    """Return `text` with each line `#- OLD` of `changes` replaced by the lines `#+ NEW` below it.

    Raises `LookupError` if a line to be replaced does not stand in `text` exactly once, with its indentation.
    """
    for change in re.split(r"^#- ", changes, flags=re.MULTILINE)[1:]:
        old, *new = change.rstrip("\n").split("\n")
        lines = text.split("\n")
        if lines.count(old) != 1 or not all(line.startswith("#+ ") for line in new):
            raise LookupError(f"{old!r} is to be one line of the solution, with lines '#+ ...' below it.")
        at = lines.index(old)
        text = "\n".join([*lines[:at], *(line[3:] for line in new), *lines[at + 1 :]])
    return text


def control(exercise: str, name: str) -> str:
    """Return the answer of the exercise's own control of that name; raises `LookupError` if there is none."""
    part = hidden_part(exercise)
    known = {one.name: one.answer for one in part.controls} if part else {}
    if name not in known:
        raise LookupError(f"{exercise} has no control {name!r}; there are {', '.join(known) or 'none'}.")
    return known[name].strip("\n")
