"""Read the grading worksheet of an assignment in Moodle, and write grades into a copy of it.

Moodle gives a participant another number in each assignment. Only the worksheet of the same assignment says whose a
number is. Its columns follow `mod/assign/gradingtable.php`, and what Moodle reads from it again follows
`mod/assign/feedback/offline/importgradeslib.php`, both in Moodle's own code. Moodle names the columns in the language
of its user; here they are English.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.status import UsageError

NUMBER, NAME, EMAIL = "identifier", "full name", "email address"
GRADE, MAXIMUM, SUBMITTED = "grade", "maximum grade", "last modified (submission)"
_CELL = re.compile(r'"(?:[^"]|"")*"|[^",\r\n]*')
_END = re.compile(r",|\r\n|\n|\r|\Z")
_AGAIN = "download it again, with Moodle's language set to English, and put it here unchanged"


class WorksheetError(UsageError):
    """The file cannot be used as a grading worksheet; the message says why and what to do."""


@dataclass(frozen=True)
class Participant:
    """A line of the worksheet. With blind marking it has neither a name nor an address."""

    number: str
    name: str = ""
    email: str = ""
    submitted: str = ""  # the time of the hand-in in Moodle's words; "-" or empty if there is none

    @property
    def is_blind(self) -> bool:
        """Return whether the line does not say who the participant is."""
        return not (self.name or self.email)


@dataclass(frozen=True)
class Cell:
    """A cell of a CSV file, and where it is in the text."""

    start: int
    end: int
    raw: str

    @property
    def text(self) -> str:
        """Return the content, without quotation marks."""
        return self.raw[1:-1].replace('""', '"') if self.raw.startswith('"') else self.raw


class Worksheet:
    """A grading worksheet of one assignment."""

    def __init__(self, content: bytes, name: str) -> None:
        """Read the bytes of a file called `name`; raises `WorksheetError`."""
        self.name = name
        self._text = _decoded(content, name)
        head, *self._lines = cells(self._text, name) or [[]]
        self._columns = {cell.text.strip().lower(): place for place, cell in enumerate(head)}
        for column in (NUMBER, GRADE):
            if column not in self._columns:
                raise WorksheetError(f"{name} has no column {column.capitalize()}; {_AGAIN}.")
        self.participants = {person.number: person for person in self._people()}
        if len(self.participants) < len(self._lines):
            raise WorksheetError(f"{name} names a participant twice; {_AGAIN}.")

    def _people(self) -> Iterator[Participant]:
        for place, line in enumerate(self._lines, 2):
            number = re.search(r"\d+\Z", self._at(line, NUMBER))
            if len(line) <= max(self._columns.values()) or not number:
                raise WorksheetError(f"Line {place} of {self.name} is not complete; {_AGAIN}.")
            yield Participant(number[0], self._at(line, NAME), self._at(line, EMAIL), self._at(line, SUBMITTED))

    def _at(self, line: list[Cell], column: str) -> str:
        place = self._columns.get(column, len(line))
        return " ".join(line[place].text.split()) if place < len(line) else ""

    def maximum(self) -> float:
        """Return the points that the assignment has in Moodle; raises `WorksheetError` if it is graded by words."""
        found = {self._at(line, MAXIMUM).replace(",", ".") for line in self._lines}
        try:
            (most,) = map(float, found)
        except ValueError:
            raise WorksheetError(f"{self.name} has no maximum grade; let Moodle grade it by points.") from None
        return most

    def filled(self, grades: Mapping[str, str]) -> bytes:
        """Return the worksheet with these grades, by participant's number; every other byte stays as it is."""
        pieces, at = [], 0
        for number, line in zip(self.participants, self._lines, strict=True):
            if number in grades:
                cell = line[self._columns[GRADE]]
                pieces += [self._text[at : cell.start], grades[number]]
                at = cell.end
        return "".join([*pieces, self._text[at:]]).encode("utf-8")


def read_worksheet(path: Path) -> Worksheet:
    """Read a file; raises `WorksheetError`."""
    try:
        return Worksheet(path.read_bytes(), path.name)
    except OSError as error:
        raise WorksheetError(f"{path.name} cannot be read: {error.strerror or error}.") from error


def cells(text: str, name: str) -> list[list[Cell]]:
    """Return the lines of a CSV text that are not empty; raises `WorksheetError` for a damaged one."""
    lines: list[list[Cell]] = [[]]
    at = len(text) - len(text.removeprefix("\ufeff"))  # spreadsheets begin a file with a byte order mark
    while at < len(text):
        found = _CELL.match(text, at)
        end = _END.match(text, found.end()) if found else None
        if found is None or end is None:
            raise WorksheetError(
                f"Line {len(lines)} of {name} is not as Moodle writes it, with commas between its cells; {_AGAIN}."
            )
        lines[-1].append(Cell(found.start(), found.end(), found[0]))
        at = end.end()
        if end[0] == "," and at == len(text):
            lines[-1].append(Cell(at, at, ""))
        elif end[0] not in (",", ""):
            lines.append([])
    return [line for line in lines if any(cell.raw for cell in line)]


def _decoded(content: bytes, name: str) -> str:
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise WorksheetError(f"{name} is not text in UTF-8; {_AGAIN}.") from None
