"""Find solution and test markers that nbgrader would overlook or misread.

nbgrader accepts a marker anywhere in a line and ignores a misspelt one, which leaves the solution in the students'
copy. So a marker is allowed here in one spelling, alone on its line, in answer cells. Similar text elsewhere is an
error.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"

# hidden cases belong to the grader; students would get those of a notebook with the feedback
_FORBIDDEN = (
    "BEGIN HIDDEN TESTS",
    "END HIDDEN TESTS",
    "BEGIN MARK SCHEME",
    "END MARK SCHEME",
    "AUTOTEST",
    "HASHED AUTOTEST",
)
_ALL = ("BEGIN SOLUTION", "END SOLUTION", *_FORBIDDEN)
_SIMILAR = 0.8


def marker_problems(cell: Mapping[str, Any], name: str, *, is_answer: bool) -> Iterator[str]:
    """Yield a sentence for each marker of a cell that is misspelt, misplaced, nested or without its partner."""
    is_open, regions = False, 0
    for number, line in enumerate(str(cell["source"]).split("\n"), start=1):
        where = f"{name}, line {number}"
        if line.strip() in (BEGIN, END) and cell["cell_type"] == "code":
            begins = line.strip() == BEGIN
            if not is_answer:
                yield f"{where}: {line.strip()!r} outside an answer cell; only answer cells have solutions."
            elif begins == is_open:
                yield f"{where}: {line.strip()!r} {'inside another solution' if begins else 'without its beginning'}."
            is_open, regions = begins, regions + begins
        elif (marker := _resembled(line)) is not None:
            yield f"{where}: {line.strip()!r:.80} resembles the marker {marker}; {_advice(marker)}"
    if is_open:
        yield f"{name}: a solution begins and does not end; add a line {END!r}."
    if is_answer and not regions:
        yield f"{name}: an answer cell without a solution; put it between {BEGIN!r} and {END!r}."


def _advice(marker: str) -> str:
    if marker in _FORBIDDEN:
        return "hidden cases belong into autograder/exercises/hidden, not into notebooks."
    return (
        f"write exactly {BEGIN!r} or {END!r} on a line of its own in an answer cell, and not these words anywhere else."
    )


def _resembled(line: str) -> str | None:
    """Return the marker that `line` contains or resembles."""
    words = re.sub(r"[\W_]+", " ", line).strip().upper()
    for marker in _ALL:
        if marker in words or marker.replace(" ", "") in words.replace(" ", ""):
            return marker
    # compare the whole line: a misspelt marker is alone on its line, while a line of prose is longer and does not match
    near = difflib.get_close_matches(words, _ALL, n=1, cutoff=_SIMILAR)
    return near[0] if near else None


def solution_regions(source: str) -> list[list[str]]:
    """Return the lines of each solution in a cell, without the markers."""
    regions: list[list[str]] = []
    is_open = False
    for line in source.split("\n"):
        if line.strip() in (BEGIN, END):
            is_open = line.strip() == BEGIN
            regions += [[]] if is_open else []
        elif is_open:
            regions[-1].append(line)
    return regions


def with_solutions(source: str) -> str:
    """Return the text of an answer cell with its solutions, without the markers."""
    return "\n".join(line for line in source.split("\n") if line.strip() not in (BEGIN, END))


def without_solutions(source: str) -> str:
    """Return the text of an answer cell with each solution replaced by `raise NotImplementedError`."""
    kept: list[str] = []
    is_open = False
    for line in source.split("\n"):
        if line.strip() in (BEGIN, END):
            is_open = line.strip() == BEGIN
            kept += [line.replace(BEGIN, "raise NotImplementedError")] if is_open else []
        elif not is_open:
            kept.append(line)
    return "\n".join(kept)
