"""Tell which cell of a hand-in answers which exercise, where its metadata no longer says so.

Many tools drop a cell's metadata when they save or clean a notebook, and students answer in a cell of their own. The
metadata goes first, then the cell's id, then the locked text `check("...")` below the answer. Where several cells
answer, the one that was checked counts. What is recognised gets its id of nbgrader back, so all later steps read the
same cells. What is not certain is left to a person.
"""

import itertools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autograder.exercises.cell_text import as_ipython_reads
from autograder.exercises.registry import all_exercises, find, of_assignment
from autograder.host.grading import STUB_CHARACTERS, Stubs, stubs_in
from autograder.host.source_text import MAX_CHARACTERS

OTHER_TYPES = ("markdown", "raw")
CHECK = "_check"  # ends the id of the cell below an answer
MOST_PARSED = 50 * STUB_CHARACTERS  # characters of a notebook in which stubs are looked for
REMEDY = "Copy the answers into the released notebook, put it in the place of this file, and run the command again."
_DEFINED = re.compile(r"^(?:(?:async +)?(?:def|class) +(\w+)|(\w+) *=(?!=))", re.MULTILINE)
_CHECKED = re.compile(r"""^ *check\( *["'](\w+)["']""", re.MULTILINE)


@dataclass(frozen=True)
class Settled:
    """The cells of a notebook with the ids of nbgrader that they should have."""

    cells: list[Any]
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # why a person must say which cell is meant; empty as a rule

    @property
    def undecided(self) -> str:
        """Return the doubts and what to do about them; empty if there are none."""
        return f"{' '.join(self.doubts)} {REMEDY}" if self.doubts else ""


@dataclass
class _Cell:
    """What a cell says of itself."""

    grade_id: str
    ids: tuple[str, ...]  # of the cell and in its metadata, as tools write them
    text: str  # empty unless it is code, or its metadata calls it an answer
    defines: frozenset[str]
    checks: frozenset[str]  # exercises
    ran: int | None  # its number among the runs of its session, as the notebook shows it


def settled(cells: Sequence[Any], assignment: str) -> Settled:
    """Return `cells` of a notebook of `assignment`, with lost ids given back and copied stubs left out."""
    wanted = of_assignment(assignment)
    settling = _Settling(list(map(_read, cells)), wanted)
    before = [one.grade_id for one in settling.cells]
    settling.recover(wanted)
    for exercise in wanted:
        settling.leave_stubs_out(exercise)
        settling.follow(exercise)
    pairs = zip(cells, settling.cells, before, strict=True)
    changed = [cell if one.grade_id == old else _with_id(cell, one.grade_id) for cell, one, old in pairs]
    return Settled(changed, tuple(settling.notes), tuple(settling.doubts))


class _Settling:
    """Give each exercise its cells, one step after the other."""

    def __init__(self, cells: list[_Cell], wanted: Sequence[str]) -> None:
        self.cells, self.notes, self.doubts = cells, list[str](), list[str]()
        self._names = {exercise: find(exercise).entry_point for exercise in wanted}
        self._stubs = dict[str, Stubs]()  # of each text
        self._left = MOST_PARSED

    def recover(self, wanted: Sequence[str]) -> None:
        """Find the cells of exercises and checks that no metadata names."""
        held = {one.grade_id for one in self.cells}
        lost = [each for exercise in wanted for each in (exercise, exercise + CHECK) if each not in held]
        ways: dict[str, Callable[[str], list[int]]] = {"their cell ids": self._by_id, "the checks": self._by_check}
        for way, search in ways.items():
            found = [each for each in lost if self._give(each, search(each))]
            lost = [each for each in lost if each not in found]
            if answers := [each for each in found if each in self._names]:
                self.notes.append(
                    f"The cells of {', '.join(answers)} had lost their metadata; they were recognised by {way}."
                )
        for exercise in (each for each in lost if each in self._names):
            self._by_name(exercise)
        known = {name for exercise in all_exercises() for name in (exercise, exercise + CHECK)}
        recognised = any(one.grade_id in known for one in self.cells)
        if wanted and not self.doubts and not recognised and any(one.text.strip() for one in self.cells):
            self.doubts.append("No cell of this notebook can be told to be an answer: all have lost their metadata.")

    def leave_stubs_out(self, exercise: str) -> None:
        """Take its id from a copy of the stub, where another cell of this id holds an answer."""
        name, mine = self._names[exercise], self._of(exercise)
        stubs = [number for number in mine if (found := self._stubs_in(number)).definitions.get(name) and found.only]
        if stubs and any(self._answers(number, name) for number in mine):
            for number in stubs:
                self.cells[number].grade_id = ""
            self.notes.append(f"A copy of the stub of {exercise} was left out.")

    def follow(self, exercise: str) -> None:
        """Let the cell that was checked count, where another one than the answer's cell defines the name, too."""
        name, mine = self._names[exercise], self._of(exercise)
        answered = [number for number in mine if self._answers(number, name)]
        graded = {self.cells[number].text.strip() for number in answered[-1:]}
        whole = [number for number in answered if name in self.cells[number].defines]
        # the last cell of a split answer goes on with the one before it, and defines nothing
        copies = whole[:-1] if answered[-1:] == whole[-1:] else []
        others = [number for number in (*copies, *self._free(name)) if self.cells[number].text.strip() not in graded]
        if not mine or not others:
            return
        only = others[-1] if not answered and self._is_one_text(others) else None
        checked = self._checked(exercise, answered) if only is None else only
        if checked is None and not answered:
            self.doubts.append(f"The answer's cell of {exercise} is untouched, and several others define {name}.")
        elif checked is None or checked in copies:
            self.doubts.append(f"Several cells answer {exercise}, and it is not certain which one was checked.")
        elif checked in mine:
            if others != copies:
                self.notes.append(f"Another cell also defines {name}; the answer's cell of {exercise} counts.")
        else:
            for number in mine:
                self.cells[number].grade_id = ""
            self.cells[checked].grade_id = exercise
            why = "is not the one that was checked" if answered else "is untouched"
            self.notes.append(f"The answer's cell of {exercise} {why}; another cell defines {name} and counts.")

    def _checked(self, exercise: str, answered: Sequence[int]) -> int | None:
        """Return the cell whose definition was checked last, or None if its place and the runs do not agree on it.

        In a run from top to bottom it is the last one above the check. Without a check it is the answer's cell.
        """
        name = self._names[exercise]
        defining = [
            number for number, one in enumerate(self.cells) if name in one.defines and one.grade_id in ("", exercise)
        ]
        checks = self._of(exercise + CHECK)
        found: set[int | None] = set() if checks else {answered[-1] if answered else None}
        for check in checks:
            end = self.cells[check].ran
            runs = [(ran, number) for number in defining if end and (ran := self.cells[number].ran) and ran < end]
            place = max((number for number in defining if number < check), default=None)
            found |= {place, max(runs)[1] if runs else place}
        (only, *others) = found
        return only if not others and only is not None and self._answers(only, name) else None

    def _by_id(self, name: str) -> list[int]:
        exercise = name.removesuffix(CHECK)
        found = [n for n, one in enumerate(self.cells) if not one.grade_id and name in one.ids and one.text]
        if name != exercise:  # another tool's id may be the same by chance; a check is recognised by its text as well
            return [number for number in found if exercise in self.cells[number].checks]
        return found

    def _by_check(self, name: str) -> list[int]:
        exercise = name.removesuffix(CHECK)
        checks = [
            n for n, one in enumerate(self.cells) if exercise in one.checks and one.grade_id in ("", exercise + CHECK)
        ]
        if name != exercise:
            return checks[:1]
        return sorted({number for check in checks for number in self._above(check, exercise)})

    def _above(self, check: int, exercise: str) -> list[int]:
        """Return the last cell above a check that defines its exercise's name and belongs to no other one."""
        for number in range(check - 1, -1, -1):
            one = self.cells[number]
            if one.checks - {exercise} or (one.grade_id and one.grade_id != exercise):
                break
            if self._names[exercise] in one.defines:
                return [number]
        return []

    def _by_name(self, exercise: str) -> None:
        others = self._free(name := self._names[exercise])
        if others and self._is_one_text(others):
            self.cells[others[-1]].grade_id = exercise
            self.notes.append(f"The cell of {exercise} was gone; the only cell that defines {name} was graded.")
        elif others and not any(exercise in doubt for doubt in self.doubts):
            self.doubts.append(f"The cell of {exercise} was gone, and several cells define {name}.")

    def _give(self, name: str, found: Sequence[int]) -> bool:
        """Give a cell its id, if it is certain which one."""
        if not found or not self._is_one_text(found):
            if found:
                self.doubts.append(f"The cell of {name} has lost its metadata, and several could be meant.")
            return False
        self.cells[found[-1]].grade_id = name
        return True

    def _of(self, exercise: str) -> list[int]:
        return [number for number, one in enumerate(self.cells) if one.grade_id == exercise]

    def _free(self, name: str) -> list[int]:
        """Return the cells of no exercise that define `name`, and are no stub."""
        return [
            number
            for number, one in enumerate(self.cells)
            if not one.grade_id and name in one.defines and self._answers(number, name)
        ]

    def _answers(self, number: int, name: str) -> bool:
        """Tell whether a cell has an answer: something of a student, in the definition of `name` if there is one."""
        return not self._stubs_in(number).leave_unanswered(name)

    def _stubs_in(self, number: int) -> Stubs:
        """Parse each text once, and none after so many that no lesson has them: those hold no stubs."""
        text = self.cells[number].text
        if text not in self._stubs:
            self._left -= len(text) if len(text) <= STUB_CHARACTERS else 0  # a longer one is not parsed
            self._stubs[text] = stubs_in(text) if self._left >= 0 else Stubs({}, only=False)
        return self._stubs[text]

    def _is_one_text(self, numbers: Iterable[int]) -> bool:
        return len({self.cells[number].text.strip() for number in numbers}) == 1


def grade_id(cell: Any) -> str:
    """Return the nbgrader id of a cell, or an empty string if it has none."""
    for key in ("metadata", "nbgrader", "grade_id"):
        cell = cell.get(key) if isinstance(cell, dict) else None
    return cell if isinstance(cell, str) else ""


def source(cell: Mapping[str, Any]) -> str:
    """Return the text of a cell, whatever its form."""
    text = cell.get("source", "")
    if isinstance(text, list):
        return "".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def answers_in(notebook: Mapping[str, Any]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the text of each answer cell by exercise id, and notes on repairs.

    JupyterLab copies a cell's metadata when the cell is split or copied, so cells with the same id are joined in order.
    """
    parts: dict[str, list[str]] = {}
    notes: list[str] = []
    for cell in notebook["cells"]:
        name = grade_id(cell)
        if name not in all_exercises():
            continue
        kind = cell.get("cell_type")
        if kind != "code":
            shown = f"a {kind} cell" if kind in OTHER_TYPES else "a cell of no known type"  # the type may be any text
            notes.append(f"The answer cell of {name} had become {shown}; its text was graded as code.")
        if name in parts:
            notes.append(f"The answer cell of {name} was split or copied; its parts were joined in order.")
        parts.setdefault(name, []).append(as_ipython_reads(source(cell)))
    return {name: "\n".join(texts) for name, texts in parts.items()}, tuple(dict.fromkeys(notes))


def _read(cell: Any) -> _Cell:
    about = cell if isinstance(cell, dict) else {}
    given = about.get("metadata")
    metadata = given if isinstance(given, dict) else {}
    ids = (about.get("id"), metadata.get("id"), metadata.get("cell_id"))
    is_read = about.get("cell_type") == "code" or grade_id(cell)
    text = as_ipython_reads(source(about).replace("\r\n", "\n")) if is_read else ""
    searched = text if len(text) <= MAX_CHARACTERS else ""
    defines = frozenset(itertools.chain.from_iterable(_DEFINED.findall(searched))) - {""}
    named = tuple(each for each in ids if isinstance(each, str))
    count = about.get("execution_count")
    ran = count if type(count) is int else None
    return _Cell(grade_id(cell), named, text, defines, frozenset(_CHECKED.findall(searched)), ran)


def _with_id(cell: Any, name: str) -> Any:
    """Return a copy of `cell` with this id of nbgrader and no other grading metadata; without any for no id."""
    metadata = cell.get("metadata") if isinstance(cell.get("metadata"), dict) else {}
    others = {key: value for key, value in metadata.items() if key != "nbgrader"}
    return {**cell, "metadata": {**others, "nbgrader": {"grade_id": name}} if name else others}
