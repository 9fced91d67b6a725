"""Search the students' files for solutions and hidden cases.

A fingerprint is a long line of a solution or hidden case, or two consecutive lines, without white space. Short and
common lines (`return x`, an import, a signature, a comment) prove nothing alone and are ignored.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from autograder.classroom.nbgrader.markers import solution_regions, without_solutions

LONG = 44  # characters; lines that lessons and solutions share by chance are shorter
MEANINGFUL = 12
_COMMON = re.compile(r"(#.*|def .*|import .*|from .* import .*|return [\w.]+|else:|try:|pass|raise .*|[\W_]*|\"\"\".*)")
_MARKERS = ("BEGIN SOLUTION", "END SOLUTION", "HIDDEN TESTS", "autograder.exercises.hidden")


@dataclass(frozen=True)
class Fingerprint:
    """Text that students must not get, and its origin."""

    text: str
    origin: str


def fingerprints(lines: Iterable[str], origin: str) -> Iterator[Fingerprint]:
    """Yield the fingerprints of a piece of secret text."""
    before = ""
    for line in _meaningful(lines):
        if len(line) >= LONG:
            yield Fingerprint(line, origin)
        if before:
            yield Fingerprint(f"{before}\n{line}", origin)
        before = line


def _meaningful(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        normal = " ".join(line.split())
        if len(normal) >= MEANINGFUL and not _COMMON.fullmatch(normal):
            yield normal


def secret_fingerprints(source: Path, hidden: Path) -> list[Fingerprint]:
    """Return the fingerprints of every solution in the notebooks below `source` and of every file in `hidden`.

    The answers of known marks in `hidden/answers` repeat code that a lesson shows to students, such as the first lines
    of a function or a program to repair. In these files, code that a notebook contains outside its solutions is not
    secret. In the other files of `hidden`, all code is secret.
    """
    found: list[Fingerprint] = []
    given: set[str] = set()
    for path in sorted(source.glob("*/*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            text = "".join(cell["source"])
            for region in solution_regions(text):
                found += fingerprints(region, f"a solution in {path.name}")
            given |= {one.text for one in fingerprints(without_solutions(text).splitlines(), path.name)}
    for path in sorted(hidden.rglob("*.py")):
        prints = fingerprints(path.read_text(encoding="utf-8").splitlines(), str(path.relative_to(hidden.parent)))
        known = given if hidden / "answers" in path.parents else set()
        found += (one for one in prints if one.text not in known)
    return found


def leaks(release: Path, secrets: Iterable[Fingerprint]) -> list[str]:
    """Return a sentence for each secret found in any file below `release`."""
    known = {secret.text: secret.origin for secret in secrets}
    problems: list[str] = []
    for path in sorted(p for p in release.rglob("*") if p.is_file()):
        for text in texts_of(path):
            for print_ in fingerprints(text.splitlines(), path.name):
                if print_.text in known:
                    problems.append(f"{path.name}: holds {print_.text!r} of {known[print_.text]}.")
            problems += [f"{path.name}: holds the words {marker!r}." for marker in _MARKERS if marker in text]
    return list(dict.fromkeys(problems))


def texts_of(path: Path) -> Iterator[str]:
    """Yield the cells and outputs of a notebook, or the whole text of any other file."""
    content = path.read_text(encoding="utf-8", errors="replace")
    if path.suffix != ".ipynb":
        yield content
        return
    for cell in json.loads(content)["cells"]:
        yield "".join(cell["source"])
        for output in cell.get("outputs", ()):
            yield from _strings(output)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and all(isinstance(v, str) for v in value):
        yield "".join(value)
    elif isinstance(value, list | dict):
        for inside in value.values() if isinstance(value, dict) else value:
            yield from _strings(inside)
