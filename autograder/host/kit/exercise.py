"""What an exercise is: frozen data, with one function a check."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from autograder.host.kit.draw import Draw


class Kind(StrEnum):
    """What the student writes, and what crosses to the host."""

    VALUE = "value"  # plain data to plain data; JSON crosses
    GRAPH = "graph"  # a pass; the transformed graph crosses, as data
    CALLABLE = "callable"  # tensors to tensors; output tensors cross


class CheckFailedError(Exception):
    """A check's answer was wrong; the message tells the student what was seen, what was expected, and what to try.

    ``share`` is the part of the check's points that was earned all the same, for checks that count several cases.
    """

    def __init__(self, message: str, *, share: float = 0.0) -> None:
        super().__init__(message)
        self.share = share


@dataclass(frozen=True)
class Check:
    """One share of an exercise's points.

    ``run(answer, draw)`` calls the answer on inputs drawn afresh and raises `CheckFailedError` when it is wrong. The
    type of ``answer`` follows from the exercise's kind: `kit.values.ValueAnswer`, `kit.tensors.TensorAnswer` or
    `kit.graphs.PassAnswer`. A check must fail for an answer that does nothing, so that an empty answer earns nothing.
    """

    name: str
    category: str  # one or two words; all that a student sees of a hidden check
    points: float
    run: Callable[[Any, Draw], None]
    hidden: bool = False


@dataclass(frozen=True)
class Control:
    """An answer whose marks are known: it proves the checks. ``marks`` is the exact number of points it must get."""

    name: str
    answer: str  # source text of the answer cell
    marks: float


@dataclass(frozen=True)
class HiddenPart:
    """What students do not install: checks whose cases they do not see, and controls, which hold answers."""

    checks: tuple[Check, ...]
    controls: tuple[Control, ...] = ()


@dataclass(frozen=True)
class Exercise:
    """One exercise; ``points`` are those of its cell in the notebook: visible and hidden checks together."""

    id: str  # the file's name, the answer cell's id, the test's name
    title: str
    kind: Kind
    entry_point: str  # the function that the answer cell defines
    points: float
    checks: tuple[Check, ...]
    setup: str = ""  # lines of the notebook's set-up cell that an answer may rely on
    needs: tuple[str, ...] = ()  # exercises whose answers run before this one
    masked: tuple[
        str, ...
    ] = ()  # packages of course_lib that hold this exercise's answer and are hidden from the worker
    wall_s: float = 60.0  # for all calls of one grading together

    @property
    def assignment(self) -> str:
        """The number that notebook and exercise share, e.g. ``"05"``."""
        return self.id.split("_", 1)[0]

    @property
    def hidden_points(self) -> float:
        """Points that only the instructor's installation can give."""
        return self.points - sum(c.points for c in self.checks if not c.hidden)
