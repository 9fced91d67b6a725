"""Read one member of the demonstration's class: a Python file with answers and the marks they must get.

The file is text, divided by lines that begin with ``# %%``; nothing in it is run here.

    # %% answer EXERCISE = MARKS      the text below is the answer cell, and must get these marks
    # %% split                        the answer goes on in a second cell, as after splitting a cell in JupyterLab
    # %% do ASSIGNMENT WHAT           something is done to the notebook or its folder; see `damage`
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MARK = "# %%"
_ANSWER = re.compile(r"answer (?P<exercise>\d\d_\w+) = (?P<marks>\d+(\.\d+)?)")
_DO = re.compile(r"do (?P<assignment>\d\d_\w+) (?P<what>\w+)")


class ClassFileError(ValueError):
    """A file of the class is not written as it should be."""


@dataclass(frozen=True)
class Member:
    """One member of the class."""

    name: str
    kind: str  # the folder: honest, mistaken or hostile
    about: str  # what it does, what it must get, and why
    answers: Mapping[str, tuple[str, ...]]  # an exercise's answer, in one cell or more
    marks: Mapping[str, float]
    damage: Mapping[str, tuple[str, ...]]  # what is done to an assignment's notebook


def read_class(folder: Path) -> tuple[Member, ...]:
    """All members, from ``folder/KIND/NAME.py``."""
    return tuple(read_member(path) for path in sorted(folder.glob("*/*.py")))


def read_member(path: Path) -> Member:
    """One member; raises `ClassFileError` naming the line that is wrong."""
    text = path.read_text(encoding="utf-8")
    answers: dict[str, list[str]] = {}
    marks: dict[str, float] = {}
    damage: dict[str, list[str]] = {}
    last = ""
    for head, body in _parts(text):
        if found := _ANSWER.fullmatch(head):
            last = found["exercise"]
            answers[last], marks[last] = [body], float(found["marks"])
        elif head == "split" and last:
            answers[last].append(body)
        elif found := _DO.fullmatch(head):
            damage.setdefault(found["assignment"], []).append(found["what"])
        else:
            raise ClassFileError(f"{path.name}: '{_MARK} {head}' is neither an answer with marks, nor split, nor do.")
    if not answers:
        raise ClassFileError(f"{path.name}: holds no '{_MARK} answer EXERCISE = MARKS'.")
    about = ast.get_docstring(ast.parse(text)) or ""
    return Member(path.stem, path.parent.name, about, _frozen(answers), marks, _frozen(damage))


def _frozen(lists: Mapping[str, list[str]]) -> dict[str, tuple[str, ...]]:
    return {key: tuple(values) for key, values in lists.items()}


def _parts(text: str) -> list[tuple[str, str]]:
    """The head and the text of each part; what stands before the first belongs to people."""
    parts = re.split(rf"^{_MARK} *(.*)\n?", text, flags=re.MULTILINE)
    return [(head.strip(), body.strip("\n")) for head, body in zip(parts[1::2], parts[2::2], strict=True)]
