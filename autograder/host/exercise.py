"""The data types of exercises: frozen data, with one function for each check."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from autograder.host.bandwidth import Bandwidth
from autograder.host.draw import Draw
from autograder.host.speed import Speed

Hints = tuple[str, str, str] | tuple[()]
"""Three steps: what to look at, how to start, and almost the line of code; none gives the answer."""


class Kind(StrEnum):
    """The form of an answer, and the data that its worker sends to the host."""

    VALUE = "value"  # plain data to plain data; JSON is sent
    ANALYSIS = "analysis"  # a function that reads one of the host's programs; plain data is sent
    GRAPH = "graph"  # a pass; the transformed graph is sent as data
    SCHEDULE = "schedule"  # a schedule of a model; the graph of the scheduled model is sent as data
    CAPTURED = "captured"  # functions; the captured graphs are sent as data
    CALLABLE = "callable"  # tensors to tensors; output tensors are sent
    MODULE = "module"  # an nn.Module; its state, outputs and gradients are sent, with the host's weights in it
    ARCHIVE = "archive"  # a TorchScript program; its archive is sent as bytes
    TRITON = "triton"  # Triton kernels; their text is checked, and a clean worker runs it and records its accesses
    COUNTEREXAMPLE = "counterexample"  # inputs that prove a program wrong; tensors, plain data and graphs are sent


class CheckFailedError(Exception):
    """A check's answer was wrong; the message tells the student the result, the expected result, and what to try.

    `share` is the part of the check's points that was earned nevertheless, for checks that count several cases. It may
    follow from numbers of an answer, and is held between 0 and 1; what is no number is 0.
    `changes` says that a program of the answer computes something else than it should, or no longer runs; in the
    categories of `autograder.host.value_cap` this limits the points of the whole exercise.
    """

    def __init__(self, message: str, *, share: float = 0.0, changes: bool = False) -> None:
        super().__init__(message)
        self.share = min(1.0, max(0.0, share))  # in this order max gives 0.0 for NaN
        self.changes = changes


class AnswerRefusedError(CheckFailedError):
    """The text of the answer is refused as a whole; no further check runs, as each would fail for the same reason."""


@dataclass(frozen=True)
class Check:
    """One share of an exercise's points.

    `run(answer, draw)` calls the answer on random inputs and raises `CheckFailedError` if it is wrong. The type of
    `answer` follows from the exercise's kind, see `autograder.host.kinds`: `ValueAnswer`, `CallableAnswer`,
    `GraphAnswer`, ... A check must fail for an answer that does nothing, so that an empty answer earns nothing.
    """

    name: str
    category: str  # one or two words; students see nothing else of a hidden check
    points: float
    run: Callable[[Any, Draw], None]
    hidden: bool = False
    speed: bool = False  # its points are for speed: the measured ratio earns them where the grading device measures


@dataclass(frozen=True)
class Control:
    """An answer whose marks are known; it tests the checks.

    `marks` is the number of points it must get; with `below`, it must get less. `trap` is a sentence of the task, or a
    part of one, that warns of this very mistake; only then may the answer pass all visible checks and get little.
    """

    name: str
    answer: str  # source text of the answer cell
    marks: float
    below: bool = False
    trap: str = ""

    def passes(self, points: float) -> bool:
        """Tell whether an answer that got `points` fits the control."""
        return points < self.marks if self.below else points == self.marks


REFERENCE = "reference"
"""Name of the control with the reference solution; the standard controls are made from it."""


@dataclass(frozen=True)
class HiddenPart:
    """What students do not install: checks with unknown cases, and controls, which hold answers.

    `right_here` names standard controls that are right answers to this exercise. `equivalent` lists small changes of
    the reference solution that change nothing, as `code -> other code`, or `statement: code -> other code` if the
    code occurs in several statements. Both give a reason for each entry; see `exercises.quality.controls` and
    `exercises.quality.mutants`.
    """

    checks: tuple[Check, ...]
    controls: tuple[Control, ...] = ()
    right_here: Mapping[str, str] = field(default_factory=dict)
    equivalent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Exercise:
    """One exercise; `points` are those of its cell in the notebook, for visible and hidden checks together."""

    title: str
    kind: Kind
    entry_point: str  # the function that the answer cell defines
    points: float
    checks: tuple[Check, ...]
    by_hand: float = 0.0  # points that a person gives in Formgrader for the answer cell's text, beside `points`
    setup: str = ""  # imports of the notebook's set-up cell; `exercises.registry.find` adds them
    needs: tuple[str, ...] = ()  # exercises whose answers run before this one
    masked: tuple[str, ...] = ()  # packages and modules that do this exercise's task, and are not there in the worker
    ready_made: tuple[str, ...] = ()  # modules that do this task and are there, such as "torch.nn.functional:relu"; a
    # copy of one of their functions, or of a masked module's, is shown to a person
    refused: tuple[str, ...] = ()  # functions of Triton's language that do this exercise's task, such as "tl.softmax"
    wall_s: float = 60.0  # limit for all calls of one grading together
    speed: Speed | None = None  # the baseline and ratios for the answer's speed
    step: Speed | None = None  # the training step whose measured time earns a bonus beside the points
    hints: Hints = ()  # shown by `autograder.practice.hint`, one more step at each call
    bandwidth: Bandwidth | None = None  # what a badge for kernels is measured on
    id: str = ""  # of the answer cell; `exercises.registry.find` forms it from lesson and file

    def __post_init__(self) -> None:
        if len(self.hints) not in (0, 3):
            raise ValueError(f"exercise {self.id}: hints have three steps, not {len(self.hints)}")

    @property
    def assignment(self) -> str:
        """Return the number that notebook and exercise share, e.g. `"05"`."""
        return self.id.split("_", 1)[0]

    @property
    def hidden_points(self) -> float:
        """Return the points that only the instructor's installation can give."""
        return self.points - sum(c.points for c in self.checks if not c.hidden)
