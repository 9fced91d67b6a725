"""What an exercise is: frozen data, with one function a check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from autograder.host.draw import Draw
from autograder.host.speed import Speed

Hints = tuple[str, str, str] | tuple[()]
"""What to look at, how to start, and nearly the line; none of them is the answer."""


class Kind(StrEnum):
    """What the student writes, and what crosses to the host."""

    VALUE = "value"  # plain data to plain data; JSON crosses
    ANALYSIS = "analysis"  # a function that reads a program of the host's; plain data crosses
    GRAPH = "graph"  # a pass; the transformed graph crosses, as data
    SCHEDULE = "schedule"  # a schedule of a model; the graph of what it builds crosses, as data
    CAPTURED = "captured"  # functions; the graphs captured from them cross, as data
    CALLABLE = "callable"  # tensors to tensors; output tensors cross
    MODULE = "module"  # an nn.Module; its state, outputs and gradients cross, with the host's weights in it
    ARCHIVE = "archive"  # a TorchScript program; its archive crosses as bytes
    COUNTEREXAMPLE = "counterexample"  # inputs that prove a program wrong; tensors, plain data and graphs cross


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
    type of ``answer`` follows from the exercise's kind, see `autograder.host.kinds`: `ValueAnswer`,
    `CallableAnswer`, `GraphAnswer`, ... A check must fail for an answer that does nothing, so that an empty answer
    earns nothing.
    """

    name: str
    category: str  # one or two words; all that a student sees of a hidden check
    points: float
    run: Callable[[Any, Draw], None]
    hidden: bool = False


@dataclass(frozen=True)
class Control:
    """An answer whose marks are known: it proves the checks.

    ``marks`` is the number of points it must get; with ``below``, it must get less.
    """

    name: str
    answer: str  # source text of the answer cell
    marks: float
    below: bool = False

    def passes(self, points: float) -> bool:
        """Whether an answer that got ``points`` is what the control says."""
        return points < self.marks if self.below else points == self.marks


REFERENCE = "reference"
"""The name of the control that holds the reference solution, from which the standard controls are made."""


@dataclass(frozen=True)
class HiddenPart:
    """What students do not install: checks whose cases they do not see, and controls, which hold answers.

    `right_here` names standard controls that are right answers to this exercise, and `equivalent` small changes of the
    reference solution that change nothing, each with the reason: `code -> other code`, or `statement: code -> other
    code` where the code stands in several statements. See `exercises.quality.controls` and `exercises.quality.mutants`.
    """

    checks: tuple[Check, ...]
    controls: tuple[Control, ...] = ()
    right_here: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)


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
    speed: Speed | None = None  # what the answer's speed is held against
    hints: Hints = ()  # what `autograder.practice.hint` shows, one step more a call

    def __post_init__(self) -> None:
        if len(self.hints) not in (0, 3):
            raise ValueError(f"exercise {self.id}: hints have three steps, not {len(self.hints)}")

    @property
    def assignment(self) -> str:
        """The number that notebook and exercise share, e.g. ``"05"``."""
        return self.id.split("_", 1)[0]

    @property
    def hidden_points(self) -> float:
        """Points that only the instructor's installation can give."""
        measured = self.speed.points if self.speed else 0.0
        return self.points - measured - sum(c.points for c in self.checks if not c.hidden)
