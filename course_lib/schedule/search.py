"""`search`: try configurations of a schedule, count what each costs, and return the cheapest that fits in memory.

A configuration takes one option of each choice, or leaves the choice alone. Nothing is timed: one training step is
counted, by `course_lib.graph.cost`, so the result is the same on every machine. Memory is the peak of that step,
because `saved_for_backward` does not see what is saved inside `torch.utils.checkpoint`. Each configuration is compared
with the original by `verify`, and one that computes something else is never returned.

If there are few configurations, all are tried. Otherwise a beam search takes the choices in order and keeps the
configurations that are cheapest and those that need least memory; what it returns is the best of those it tried.
"""

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

from course_lib.errors import ScheduleError
from course_lib.graph import cost
from course_lib.isolation import fresh_inputs, preserving
from course_lib.schedule.schedule import Schedule, create_schedule
from course_lib.schedule.verification import verify
from course_lib.show import Table

LEFT = "-"  # how a choice is shown that was left alone
GOALS = ("bytes_moved", "launches")
Action = Callable[[Schedule], object]
Configuration = tuple[str, ...]  # the option of each choice, or LEFT


@dataclass(frozen=True)
class Choice:
    """One decision of a schedule, such as what to do with a layer.

        >>> Choice("layer 0", {"checkpoint": lambda schedule: schedule["0"].checkpoint()}).names
        ('-', 'checkpoint')

    Raises `ScheduleError` unless the options are one or more functions, none of them named "-".
    """

    name: str
    options: Mapping[str, Action]
    """What can be done, by name: each is called with the schedule of the whole model. Doing nothing is no option of
    these, because it is always possible."""

    def __post_init__(self) -> None:
        if not self.options or not all(map(callable, self.options.values())) or LEFT in self.options:
            raise ScheduleError(
                f"The choice {self.name!r} got the options {dict(self.options)!r}; it expects functions of a schedule "
                f"by name, at least one, and none named {LEFT!r}."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of all options, the one that does nothing first."""
        return (LEFT, *self.options)


@dataclass(frozen=True)
class Candidate:
    """A configuration that was tried."""

    options: Mapping[str, str]  # the option that was taken, by the name of its choice
    launches: int = 0  # of one step
    bytes_moved: int = 0  # of one step
    memory_bytes: int = 0  # the most that one step needs at once, beside the model and its inputs
    problem: str = ""  # why it cannot be taken; empty if it computes what the model computes
    schedule: Schedule | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        taken = ", ".join(f"{name}: {option}" for name, option in self.options.items() if option != LEFT)
        return taken or "the model as it is"


@dataclass(frozen=True, repr=False)
class SearchResult:
    """The best candidate, and all that were tried."""

    best: Candidate
    candidates: tuple[Candidate, ...]  # in the order in which they were tried
    configurations: int  # how many there are
    memory_limit_bytes: int | None

    @property
    def schedule(self) -> Schedule:
        """Return the schedule of the best candidate."""
        assert self.best.schedule is not None, "the best candidate has been built"
        return self.best.schedule

    def table(self) -> Table:
        """Return what each candidate costs: the cheapest first, then what needs too much memory, then what is wrong."""
        columns = ("configuration", "launches", "bytes moved", "memory, bytes", "verdict")
        ranked = sorted(self.candidates, key=lambda one: (self._place(one), one.bytes_moved, one.launches))
        rows = tuple(
            (str(one), f"{one.launches:,}", f"{one.bytes_moved:,}", f"{one.memory_bytes:,}", self._verdict(one))
            for one in ranked
        )
        return Table(columns, rows, numbers=columns[1:4])

    def _place(self, one: Candidate) -> int:
        return 2 if one.problem else int(_excess(one, self.memory_limit_bytes) > 0)

    def _verdict(self, one: Candidate) -> str:
        if one.problem:
            return one.problem
        if _excess(one, self.memory_limit_bytes):
            return "needs too much memory"
        return "the best" if one is self.best else "right"

    def __str__(self) -> str:
        tried = f"{len(self.candidates)} of {self.configurations} configurations tried; the best: {self.best}"
        counted = f"{self.best.launches:,} launches, {self.best.bytes_moved:,} bytes moved"
        limit = "" if self.memory_limit_bytes is None else f" of {self.memory_limit_bytes:,}"
        return f"{tried}\n  {counted}, {self.best.memory_bytes:,} bytes{limit} needed at once"

    __repr__ = __str__  # a notebook, a terminal and a log all show the readable form


def search(
    model: nn.Module,
    choices: Sequence[Choice],
    inputs: Sequence[object],
    *,
    memory_limit_bytes: int | None = None,
    minimise: str = "bytes_moved",
    dtypes: Sequence[torch.dtype] = (torch.float64, torch.float32),
    max_exhaustive: int = 64,
    beam: int = 4,
) -> SearchResult:
    """Return the configuration with the lowest counted cost that fits in memory and computes what the model computes.

        >>> model = nn.Sequential(nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 4))
        >>> choice = Choice("first", {"checkpoint": lambda schedule: schedule["0"].checkpoint()})
        >>> search(model, [choice], (torch.ones(2, 4),)).best.options
        {'first': '-'}

    The options of `choices` are applied to a new schedule in the order of the choices. One training step is counted:
    forward, sum of the results, backward. `minimise` is "bytes_moved" or "launches"; the other one decides between
    equals, then memory. `memory_limit_bytes` limits what is alive at once during the step, gradients included.

    Each configuration is verified in both modes and at the precisions `dtypes`, which takes most of the time. Up to
    `max_exhaustive` configurations are all tried. If there are more, after each choice at most `2 * beam` are
    kept: the cheapest, and those that come nearest to the limit.

    Raises `ScheduleError` for invalid arguments, if no configuration that was tried fits, or if none is right.
    """
    _require_arguments(model, choices, inputs, memory_limit_bytes, minimise)
    trials = _Trials(model, tuple(choices), inputs, dtypes, memory_limit_bytes, minimise)
    total = math.prod(len(choice.names) for choice in choices)
    with preserving(None):  # `verify` sets the random state
        if total > max_exhaustive:
            trials.search_beam(beam)
        else:
            for configuration in itertools.product(*(choice.names for choice in choices)):
                trials.candidate(configuration)
    return SearchResult(trials.best(), trials.candidates, total, memory_limit_bytes)


class _Trials:
    """The configurations that were tried so far."""

    def __init__(
        self,
        model: nn.Module,
        choices: Sequence[Choice],
        inputs: Sequence[object],
        dtypes: Sequence[torch.dtype],
        limit: int | None,
        goal: str,
    ) -> None:
        self._model, self._choices, self._inputs, self._dtypes = model, choices, inputs, dtypes
        self._limit, self._goal = limit, goal
        self._tried: dict[Configuration, Candidate] = {}

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        return tuple(self._tried.values())

    def candidate(self, configuration: Configuration) -> Candidate:
        """Build, verify and count a configuration once."""
        if configuration not in self._tried:
            names = (choice.name for choice in self._choices)
            options = dict(zip(names, configuration, strict=True))
            self._tried[configuration] = self._new(configuration, options)
        return self._tried[configuration]

    def _new(self, configuration: Configuration, options: Mapping[str, str]) -> Candidate:
        schedule = create_schedule(self._model)
        for choice, option in zip(self._choices, configuration, strict=True):
            if option != LEFT:
                try:
                    choice.options[option](schedule)
                except Exception as error:  # an option is the caller's code
                    return Candidate(options, problem=f"{choice.name}: {type(error).__name__}: {error}")
        report = verify(schedule, self._inputs, dtypes=self._dtypes)
        if not report.passed:
            return Candidate(options, problem=f"computes something else: {report.failures[0]}")
        counted = count_step(schedule.build(), self._inputs)
        return Candidate(options, *counted, schedule=schedule)

    def search_beam(self, width: int) -> None:
        """Take the choices in order; extend the best configurations so far by each option."""
        kept: list[Configuration] = [(LEFT,) * len(self._choices)]
        for place, choice in enumerate(self._choices):
            extended = [(*one[:place], name, *one[place + 1 :]) for one in kept for name in choice.names]
            right = [one for one in dict.fromkeys(extended) if not self.candidate(one).problem]
            cheap = sorted(right, key=lambda one: self._cost(self.candidate(one)))[:width]
            small = sorted(right, key=lambda one: self._cost_beyond(self.candidate(one)))[:width]
            kept = list(dict.fromkeys([*cheap, *small])) or kept

    def best(self) -> Candidate:
        """Return the cheapest candidate that fits; raise `ScheduleError` if there is none."""
        right = [one for one in self.candidates if not one.problem]
        if not right:
            raise ScheduleError(
                f"search tried {len(self.candidates)} configurations, and none computes what the model computes; the "
                f"first one: {self.candidates[0].problem}. Verify each option alone."
            )
        best = min(right, key=self._cost_beyond)
        if _excess(best, self._limit):
            raise ScheduleError(
                f"search tried {len(self.candidates)} configurations, and none fits in {self._limit:,} bytes: the "
                f"smallest ({best}) needs {best.memory_bytes:,}. Raise memory_limit_bytes to that, or add a choice "
                "that saves memory, such as checkpoint()."
            )
        return best

    def _cost(self, one: Candidate) -> tuple[int, int, int]:
        counts = (one.bytes_moved, one.launches)
        first, second = counts if self._goal == "bytes_moved" else counts[::-1]
        return first, second, one.memory_bytes

    def _cost_beyond(self, one: Candidate) -> tuple[int, int, int, int]:
        return _excess(one, self._limit), *self._cost(one)


def count_step(model: nn.Module, inputs: Sequence[object]) -> tuple[int, int, int]:
    """Return launches, bytes moved and most bytes alive of one training step; the model is as it was afterwards."""
    given = fresh_inputs(inputs)

    def step() -> list[torch.Tensor | None]:
        leaves = [one for one in tree_leaves(model(*given)) if isinstance(one, torch.Tensor) and one.requires_grad]
        if leaves:
            torch.autograd.backward([one.sum() for one in leaves])
        return [parameter.grad for parameter in model.parameters()]

    with preserving(model), torch.enable_grad():
        model.train()
        model.zero_grad(set_to_none=True)
        counted = cost(step, ())
    return counted.launches, counted.bytes_moved, counted.peak_bytes


def _excess(one: Candidate, limit: int | None) -> int:
    """Return the bytes that a candidate needs beyond the limit."""
    return 0 if limit is None else max(0, one.memory_bytes - limit)


def _require_arguments(model: object, choices: object, inputs: object, limit: object, minimise: str) -> None:
    if not isinstance(model, nn.Module) or not isinstance(inputs, (tuple, list)):
        raise ScheduleError(
            f"search got a {type(model).__name__} and inputs of type {type(inputs).__name__}; it expects a "
            "torch.nn.Module and a tuple of its arguments."
        )
    given = list(choices) if isinstance(choices, (tuple, list)) else [choices]
    names = [choice.name for choice in given if isinstance(choice, Choice)]
    if not isinstance(choices, (tuple, list)) or not names or len(set(names)) < len(given):
        raise ScheduleError(
            f"search got the choices {choices!r}; it expects a list of them, each a Choice with a name of its own, "
            'such as [Choice("layer 0", {"checkpoint": lambda schedule: schedule["0"].checkpoint()})].'
        )
    if minimise not in GOALS:
        raise ScheduleError(f"search got minimise={minimise!r}; it knows {' and '.join(map(repr, GOALS))}.")
    if limit is not None and (not isinstance(limit, int) or limit < 1):
        raise ScheduleError(f"search got memory_limit_bytes={limit!r}; it expects a number of bytes above 0, or None.")
