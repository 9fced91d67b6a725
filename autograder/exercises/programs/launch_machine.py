"""The host's machine for launches that came as data: it starts them again, on inputs that the host draws afterwards.

An answer may have written the data itself, so nothing in it is believed. Buffers have numbers, and their contents are
the host's: inputs that it drew, results of launches, and NaN in memory that no launch wrote. Operators are looked up in
a table, and sizes are bounded. A state of the random numbers has a number, and its content is the host's, too. A
capture comes as its launches, once, so each replay of it starts the same ones; only they write results into old memory.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise, zip_longest
from operator import attrgetter
from typing import Any

import torch

from autograder.exercises.programs.replayed_runs import PLACES, READ
from autograder.host.channel import MalformedAnswerError
from autograder.host.exercise import CheckFailedError
from autograder.host.kinds.reports import Report, counts, entries, items
from course_lib.launches.launch_record import reads_on_host, tensors_in, written_by

MOST_EVENTS = 20_000  # and launches
MOST_NUMBERS = 4096  # in a buffer, and as a product of sizes
MOST_ITEMS = 64  # in a list of arguments
MOST_TOUCHED = 4 * 10**6  # numbers, by all launches of a report
A_VIEW, AN_ITEM = 64, 4  # what a view, and an item among arguments, cost beside, in numbers
LARGEST = 10**6  # of a number among the arguments
MOST_BESIDE = 2  # such as a sum with 0 in place of a clone; the least eager call has four
NEVER_REPLAYED = (
    "A replay starts the captured launches on the captured memory: copy_ the inputs into static tensors, and call "
    "graph.replay()."
)
COLD = "Call the function inside `with warm_up():` before the capture."
NOT_FINITE = ("inf", "-inf", "nan")  # how a recorder writes these numbers
COPIES = ("aten.copy_.default", "aten._foreach_copy_.default", "aten.clone.default")
CLEARS = ("aten.zero_.default", "aten._foreach_zero_.default")  # such as `zero_grad` before a replay
_NAMES = """
    _foreach_add.List _foreach_add_.List _foreach_add_.Scalar _foreach_add_.Tensor _foreach_addcdiv_.Scalar
    _foreach_addcmul_.Scalar _foreach_copy_.default _foreach_mul_.Scalar _foreach_sqrt.default _foreach_zero_.default
    _local_scalar_dense.default _to_copy.default abs.default add.Scalar add.Tensor add.out add_.Scalar add_.Tensor
    addcdiv_.default addcmul_.default addmm.default all.default allclose.default any.default bernoulli_.float
    bitwise_and.Tensor bitwise_or.Tensor cat.default clone.default copy_.default div.Scalar div.Tensor div.out
    div_.Scalar div_.Tensor dot.default eq.Scalar eq.Tensor equal.default fill_.Scalar fill_.Tensor full.default
    full_like.default ge.Scalar ge.Tensor gt.Scalar gt.Tensor isinf.default isnan.default le.Scalar le.Tensor
    lerp_.Scalar linalg_vector_norm.default logical_not.default lt.Scalar lt.Tensor masked_fill_.Scalar
    max.default mean.default mean.dim min.default mm.default mse_loss.default mse_loss_backward.default
    mul.Scalar mul.Tensor mul.out mul_.Scalar mul_.Tensor ne.Scalar ne.Tensor neg.default new_full.default
    new_ones.default new_zeros.default ones.default ones_like.default pow.Tensor_Scalar sgn.default sin.default
    sqrt.default stack.default sub.Scalar sub.Tensor sub.out sub_.Scalar sub_.Tensor sum.default sum.dim_IntList
    tanh.default tanh_backward.default where.self zero_.default zeros.default zeros_like.default
"""
OPERATORS = {f"aten.{name}": attrgetter(name)(torch.ops.aten) for name in _NAMES.split()}
"""What programs and trainings of lesson 15 launch, and ways to copy, to clear and to compare memory."""
PRODUCTS = (torch.ops.aten.mm.default, torch.ops.aten.addmm.default)


@dataclass
class Call:
    """One call of an answer's function: what it replays, its launches beside that, and its result."""

    replays: Counter[int] = field(default_factory=Counter)
    """How many launches it started by replaying each capture."""
    beside: list[str] = field(default_factory=list)
    """The launches outside of replays, without copies, zeros, and what reads or compares for the host."""
    returned: Report = field(default_factory=dict)
    output: torch.Tensor = field(default_factory=lambda: torch.tensor(math.nan))
    """The result when it came back."""
    was_read: bool = False
    """Whether the result is a number that the host read."""


class LaunchMachine:
    """Start the launches of a report, and keep what each call gave.

    `given` are the contents of the buffers that the report names first, `seeds` those of its calls that set one.
    """

    def __init__(self, report: Report, given: Sequence[torch.Tensor], seeds: Sequence[int] = ()) -> None:
        self._sizes = counts(report.get("sizes"))
        self._given = counts(report.get("given"), len(given))
        self._buffers = {number: tensor.clone() for number, tensor in zip(self._given, given, strict=True)}
        self._states: dict[int, torch.Tensor] = {}
        self._values: list[torch.Tensor] = []
        self._read: set[int] = set()  # buffers made of such values
        self._warm: set[str] = set()  # operators that ran outside of replays
        self._graphs: dict[int, list[Any]] = {}
        self._replayed = self._touched = 0
        self._seeds = iter(seeds)
        self.calls: list[Call] = []
        events = items(report.get("events"), (dict,))
        if len(self._buffers) < len(given) or len(events) > MOST_EVENTS:
            raise MalformedAnswerError
        with torch.no_grad():
            for event in events:
                try:
                    self._take(event)
                except (RuntimeError, TypeError, ValueError, LookupError, AttributeError):
                    raise MalformedAnswerError from None  # no recorder writes such an event

    def given(self, place: int) -> torch.Tensor:
        """Return what a tensor that was given holds at the end."""
        return self._buffers[self._given[place]]

    def later(self, call: Call) -> torch.Tensor:
        """Return what the result of a call holds at the end."""
        return self._result(call.returned)

    def _take(self, event: Report) -> None:
        if "operator" in event:
            self._launch(event)
        elif "replay" in event:
            self._replay(event)
        elif "call" in event:
            self.calls.append(Call())
        elif "returned" in event and self.calls:
            call = self.calls[-1]
            call.returned = entries(event["returned"])
            call.output = self._result(call.returned).clone()
            call.was_read = "read" in call.returned or call.returned.get("buffer") in self._read
        elif "seeded" in event:
            (number,) = counts([event["seeded"]])
            self._states[number] = torch.Generator().manual_seed(next(self._seeds, 0)).get_state()
        elif "read" in event:
            self._new_buffer(event.get("buffer"), self._value(event["read"]).reshape(1))
            self._read.add(event["buffer"])
        else:
            raise MalformedAnswerError

    def _result(self, returned: Report) -> torch.Tensor:
        return self._value(returned["read"]) if "read" in returned else self._view(returned)

    def _value(self, place: Any) -> torch.Tensor:
        """Return a value that the host read, or NaN for one that it did not."""
        known = type(place) is int and 0 <= place < len(self._values)
        return self._values[place] if known else torch.tensor(math.nan)

    def _launch(self, event: Report) -> None:
        args, options = self._arguments(event)
        if event["operator"] == READ and args and isinstance(args[0], torch.Tensor):
            self._values.append(args[0].flatten()[0].clone())
            return
        before, after = counts(event["states"], 2) if "states" in event else (None, None)
        generator = self._generator(before)
        func, found = self._started(event["operator"], args, options, generator)
        self._warm.add(event["operator"])
        if after is not None:
            self._states[after] = generator.get_state()
        if reads_on_host(func):
            self._values.append(torch.tensor(float(found)))
        elif self.calls and event["operator"] not in (*COPIES, *CLEARS) and not compares(args, found):
            self.calls[-1].beside += [event["operator"]] * _tensors_each_for_itself(event["operator"], args)
        for written, tensor in _results(event, func, args, options, found):
            self._new_buffer(written.get("buffer"), tensor)

    def _replay(self, event: Report) -> None:
        """Start the launches of a capture, which are those of its first replay; their results have their places."""
        (number,), (before, after) = counts([event["replay"]]), counts(event.get("states"), 2)
        steps = self._graphs.setdefault(number, items(event.get("steps", []), (dict,)))
        self._replayed += len(steps)
        if self._replayed > MOST_EVENTS:
            raise MalformedAnswerError
        for name in sorted({step["operator"] for step in steps} - self._warm - {*COPIES}):
            raise CheckFailedError(f"{name[:60]} ran for the first time during a capture. {COLD}")
        generator = self._generator(before)
        for step in steps:
            args, options = self._arguments(step)
            func, found = self._started(step["operator"], args, options, generator)
            for written, tensor in _results(step, func, args, options, found):
                self._view(written).copy_(tensor)
        self._states[after] = generator.get_state()
        if self.calls:
            self.calls[-1].replays[number] = len(steps)

    def _arguments(self, launch: Report) -> tuple[list[Any], Report]:
        args, options = self._filled(launch.get("args")), self._filled(launch.get("options"))
        if not isinstance(launch["operator"], str) or not isinstance(args, list) or not isinstance(options, dict):
            raise MalformedAnswerError
        if any(options.get(option) is not None for option in PLACES):
            raise MalformedAnswerError
        return args, options

    def _generator(self, state: int | None) -> torch.Generator:
        """Return a generator in the state of this number; one that the report does not explain is any."""
        generator = torch.Generator()
        generator.seed()
        if state is not None:
            generator.set_state(self._states.setdefault(state, generator.get_state()))
        return generator

    def _new_buffer(self, number: Any, tensor: torch.Tensor) -> None:
        """Keep a result. It is new memory: with a number that is known, an eager call would look like a replay."""
        (known,) = counts([number])
        if known in self._buffers or known >= len(self._sizes) or tensor.numel() > MOST_NUMBERS:
            raise MalformedAnswerError
        self._touch(tensor.numel())
        self._buffers[known] = tensor

    def _touch(self, numbers: int) -> None:
        """Take numbers from those that all launches of the report may touch."""
        self._touched += numbers
        if self._touched > MOST_TOUCHED:
            raise MalformedAnswerError

    def _filled(self, value: Any, depth: int = 0) -> Any:
        """Return arguments with tensors in place of their descriptions."""
        self._touch(AN_ITEM)
        if isinstance(value, dict) and depth:
            return self._view(value)
        if isinstance(value, dict):
            return {name: self._filled(item, 1) for name, item in value.items()}
        if isinstance(value, list) and depth < 4:
            sizes = [abs(item) or 1 for item in value if type(item) is int]
            if len(value) > MOST_ITEMS or (depth and math.prod(sizes) > MOST_NUMBERS):
                raise MalformedAnswerError
            return [self._filled(item, depth + 1) for item in value]
        if value in NOT_FINITE:
            return float(value)
        if value is not None and (type(value) not in (bool, int, float) or abs(value) > LARGEST):
            raise MalformedAnswerError
        return value

    def _view(self, written: Report) -> torch.Tensor:
        """Return a part of a buffer; one that no launch wrote is made of NaN."""
        (number,), layout = counts([written.get("buffer")]), written.get("layout")
        if not isinstance(layout, list) or len(layout) != 3 or number >= len(self._sizes):
            raise MalformedAnswerError
        (offset,), size, stride = counts(layout[:1]), counts(layout[1]), counts(layout[2], len(layout[1]))
        if number not in self._buffers:
            self._new_buffer(number, torch.full((min(self._sizes[number], MOST_NUMBERS + 1),), math.nan))
        buffer = self._buffers[number]
        last = offset + sum((count - 1) * step for count, step in zip(size, stride, strict=True))
        if math.prod(size) > MOST_NUMBERS or last >= buffer.untyped_storage().nbytes() // buffer.itemsize:
            raise MalformedAnswerError
        self._touch(A_VIEW + math.prod(size))
        return buffer.as_strided(size, stride, offset)

    def _started(self, name: str, args: list[Any], options: Report, generator: torch.Generator) -> tuple[Any, Any]:
        """Start one launch, and return its operator and what it gave; one that draws takes the generator."""
        func = OPERATORS.get(name)
        if func is None:
            raise CheckFailedError(
                f"A launch of {name[:60]} is none that this exercise needs. Call the program, and copy tensors by "
                "clone() and copy_()."
            )
        draws = {"generator": generator} if torch.Tag.nondeterministic_seeded in func.tags else {}
        try:
            sizes = _sizes_of_results(func, args, options)
            if all(math.prod(size) <= MOST_NUMBERS for size in sizes):
                self._touch(sum(map(math.prod, sizes)))
                return func, func(*args, **{**options, **draws})
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            why = " ".join(str(error).split())[:160]
            raise CheckFailedError(f"A launch of {name} does not run on other inputs: {why}") from None
        raise MalformedAnswerError


def _sizes_of_results(func: Any, args: list[Any], options: Report) -> list[torch.Size]:
    """Return sizes that no result exceeds, before anything is computed.

    They are those to which the tensors broadcast, and rows and columns for a product of matrices. An operator with
    lists takes the places of the lists in turn. Raises `RuntimeError` for tensors that do not broadcast, for one that
    is an option other than `out`, and for an `out` of another size, which the operator would make larger.
    """
    if any(name != "out" and tensors_in(value) for name, value in options.items()):
        raise RuntimeError("a tensor is given as an option; only `out` may be one.")
    single = [value.shape for value in args if isinstance(value, torch.Tensor)]
    if func in PRODUCTS:
        *single, first, second = single
        single.append(torch.Size([first[0], second[1]]))
    lists = [tensors_in(value) for value in args if isinstance(value, list)]
    together = zip_longest(*filter(None, lists)) if any(lists) else [()]
    sizes = [
        torch.broadcast_shapes(*single, *(tensor.shape for tensor in each if tensor is not None)) for each in together
    ]
    if "out" in options and options["out"].shape != sizes[0]:
        raise RuntimeError(f"the result has the shape {tuple(sizes[0])}, and out {tuple(options['out'].shape)}.")
    return sizes


def _results(
    launch: Report, func: Any, args: list[Any], options: Report, found: Any
) -> Iterator[tuple[Report, torch.Tensor]]:
    """Return the new tensors that a launch gave, each with what the report says of it."""
    made = [] if written_by(func, args, options) else tensors_in(found)
    return zip(items(launch.get("results"), (dict,), len(made)), made, strict=True)


def _tensors_each_for_itself(operator: str, args: Sequence[Any]) -> int:
    """Return how many launches one operator stands for: with a list of tensors it works on each, as so many would."""
    return len(args[0]) if operator.startswith("aten._foreach_") else 1


def compares(args: Sequence[Any], found: Any) -> bool:
    """Return whether a launch compares for the host: it gives truth values, or counts them.

    Programs and trainings compute none. One that takes them beside other numbers computes: a product with truth does.
    """
    given, made = ({tensor.dtype for tensor in tensors_in(each)} for each in (args, found))
    counts_them = given == {torch.bool} and not any(dtype.is_floating_point for dtype in made)
    return bool(made) and (made == {torch.bool} or counts_them)


def require_replays(calls: Sequence[Call], least: int) -> None:
    """Raise `CheckFailedError` unless calls replay one capture of at least so many launches, and start few beside it.

    A capture is data, so its replay runs no Python of the answer. Launches beside replays are those of an eager call,
    and those of a capture that the call before did not replay are as good as eager ones.
    """
    for call in calls:
        if len(call.beside) > MOST_BESIDE:
            raise CheckFailedError(
                f"A call after the capture starts {len(call.beside)} launches beside replays, such as "
                f"{', '.join(call.beside[:3])}; these ran eagerly. {NEVER_REPLAYED}"
            )
    for before, after in pairwise(calls):
        if (again := (before.replays & after.replays).total()) < least:
            raise CheckFailedError(
                f"Two calls after the capture replay {again} launches of the same captures; the function has at least "
                f"{least}. {NEVER_REPLAYED}"
            )
        if (fresh := (after.replays - before.replays).total()) + len(after.beside) > MOST_BESIDE:
            raise CheckFailedError(
                f"A call after the capture replays {fresh} launches of captures that the call before did not replay. "
                f"Capture once, and replay that. {NEVER_REPLAYED}"
            )
