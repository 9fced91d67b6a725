"""Exercise 15.2: capture a function once for each shape, and replay it."""

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch

from autograder.exercises.programs import replayed_runs
from autograder.exercises.questions import Question
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import Report, counts, entries, items

LARGEST_SEED = 10**6
NEAR = 1e-5  # the same operators give the same numbers; a machine may sum in another order
MOST_NEW_READS = 2  # such as an input that is read otherwise than by copy_; the least eager call has three
NEVER_REPLAYED = (
    "A replay starts the captured launches on the captured memory: copy_ the inputs into static tensors, and call "
    "graph.replay()."
)
Call = Question


def call_of(draw: Draw, *shapes: list[int], draws: int | None = None) -> Call:
    """Return a call with inputs of these shapes; `draws` is the seed to set before it."""
    return {"shapes": list(shapes), "seed": draw.integer(0, LARGEST_SEED), "draws": draws}


def steps_of(draw: Draw, *last: str) -> list[str]:
    """Return the steps of a program that uses both inputs and its number; `last` are its last steps."""
    middle = ["times", "plus", "scale", draw.choice(("sin", "tanh"))]
    return [*draw.sample(middle, len(middle)), *last]


def size_of(draw: Draw) -> list[int]:
    """Return a shape with at least two rows."""
    return [draw.integer(2, 5), draw.integer(3, 6)]


def values(found: Any) -> tuple[list[int], list[float | None]]:
    """Return shape and values of a reported tensor; raise `MalformedAnswerError` for anything else."""
    report = entries(found)
    return counts(report.get("shape")), items(report.get("values"), (float, type(None)))


def agree(found: Any, expected: torch.Tensor) -> bool:
    """Tell whether a reported tensor has this shape and these values."""
    shape, reported = values(found)
    if shape != list(expected.shape) or None in reported or len(reported) != expected.numel():
        return False
    wanted = expected.detach().double().flatten()
    return torch.allclose(torch.tensor(reported, dtype=torch.float64), wanted, rtol=NEAR, atol=NEAR)


def rows_of(report: Report, name: str, count: int) -> list[Any]:
    """Return a list of a report with so many rows; raise `MalformedAnswerError` for anything else."""
    found = report.get(name)
    if not isinstance(found, list) or len(found) != count:
        raise MalformedAnswerError
    return found


def require_replays(reads: Sequence[Any], least: int, middles: Sequence[Any]) -> None:
    """Raise `CheckFailedError` unless each two calls in turn read the same memory at least so many times, and no other.

    `reads` lists, for each call, the addresses that its launches read, but for copies in place. `middles` has a tensor
    of the capture after each call, which was spoilt before it, and which a replay writes again.
    """
    counted = [Counter(items(each, (int,))) for each in reads]
    for before, after in pairwise(counted):
        again = (before & after).total()
        if again < least:
            raise CheckFailedError(
                f"In two calls after the capture, launches read the same memory {again} times; the captured launches "
                f"read at least {least} tensors, in the same memory each time. {NEVER_REPLAYED}"
            )
        if (new := after.total() - again) > MOST_NEW_READS:
            raise CheckFailedError(
                f"A call after the capture reads {new} tensors in memory that no call before it read. Launches of a "
                f"replay read the captured memory; these ran eagerly. {NEVER_REPLAYED}"
            )
    for _, reported in map(values, middles):
        if not reported or None in reported:
            raise CheckFailedError(f"A call after the capture did not write the captured results. {NEVER_REPLAYED}")


class Called:
    """The calls of an answer's function, as the worker reports them."""

    def __init__(self, answer: AnalysisAnswer, steps: Sequence[str], calls: Sequence[Call]) -> None:
        self.steps, self.calls = list(steps), list(calls)
        report = entries(answer.employ(replayed_runs, "call_in_turn", steps=self.steps, calls=[*self.calls]))
        if "class" in report:
            raise CheckFailedError(
                f"Expected a function that returns a tensor, and got a {str(report['class'])[:40]}. replayed(function) "
                "returns a function of the same inputs; that one returns the tensor."
            )
        count = len(self.calls)
        self.outputs, self.later = rows_of(report, "outputs", count), rows_of(report, "later", count)
        self.inputs, self.reads = rows_of(report, "inputs", 2 * count), rows_of(report, "reads", count)
        self.middles = rows_of(report, "middles", count)
        self.host_reads = counts(report.get("host_reads"), count)

    def number(self, index: int, *, eager: bool = False) -> float:
        """Return the program's number for a call: that of its capture, or the one that an eager call reads."""
        shapes = [str(call["shapes"]) for call in self.calls]
        seen = list(dict.fromkeys(shapes[:index]))
        new = shapes[index] not in seen
        return replayed_runs.number_of(len(seen) if eager or new else seen.index(shapes[index]))

    def expected(self, index: int, *, inputs: int | None = None, eager: bool = False) -> torch.Tensor:
        """Return the output of a call without state; `inputs` is another call, whose inputs are taken."""
        function = replayed_runs.program(self.steps, [self.number(index, eager=eager)])
        with torch.random.fork_rng(devices=[]):
            if self.calls[index]["draws"] is not None:
                torch.manual_seed(self.calls[index]["draws"])
            return function(*replayed_runs.inputs(self.calls[index if inputs is None else inputs]))

    def require_replay(self) -> None:
        """Raise `CheckFailedError` unless calls with known shapes read the same memory; see `require_replays`."""
        known: dict[str, list[tuple[Any, Any]]] = {}
        for call, *row in zip(self.calls, self.reads, self.middles, strict=True):
            known.setdefault(str(call["shapes"]), []).append((row[0], row[1]))
        for _, *rows in known.values():
            reads, middles = zip(*rows, strict=True)
            require_replays(reads, len(self.steps) + 2, middles)  # two steps read both inputs

    def require_equal(self, index: int, why: str) -> None:
        """Raise `CheckFailedError` unless the output of a call was right when it came back."""
        found = self.outputs[index]
        if agree(found, self.expected(index)):
            return
        shape, reported = values(found)
        shapes = " and ".join(str(tuple(each)) for each in self.calls[index]["shapes"])
        about = f"Call {index + 1}, with inputs of shapes {shapes}, gives"
        if shape != list(self.expected(index).shape):
            raise CheckFailedError(f"{about} shape {tuple(shape)}. Keep one graph for each shape of the inputs.")
        if None in reported:
            raise CheckFailedError(f"{about} memory that nobody wrote: a capture computes nothing, so replay after it.")
        if agree(found, self.expected(index, eager=True)):
            raise CheckFailedError(
                f"{about} what Python computes now. The check changed a number of the function after the capture, and "
                "a replay runs no Python: capture once for each shape, then replay."
            )
        if any(agree(found, self.expected(index, inputs=other)) for other in range(index)):
            raise CheckFailedError(
                f"{about} the result of an earlier call's inputs. A name that is bound anew changes no memory: copy_ "
                "every input into its static tensor."
            )
        raise CheckFailedError(f"{about} other numbers than the captured function. {why}")


def alike(draw: Draw, count: int) -> list[Call]:
    """Return calls whose inputs have the same shapes."""
    shape = size_of(draw)
    return [call_of(draw, shape, shape) for _ in range(count)]


def _equal(answer: AnalysisAnswer, draw: Draw) -> None:
    called = Called(answer, steps_of(draw), alike(draw, 4))
    for index in range(len(called.calls)):
        called.require_equal(index, "copy_ every input into its static tensor, replay, and return the result.")
    called.require_replay()


def _same_memory(answer: AnalysisAnswer, draw: Draw) -> None:
    Called(answer, steps_of(draw), alike(draw, 4)).require_replay()


def _unchanged(answer: AnalysisAnswer, draw: Draw) -> None:
    called = Called(answer, steps_of(draw), alike(draw, 4))
    called.require_replay()
    given = [tensor for call in called.calls for tensor in replayed_runs.inputs(call)]
    for place, (found, expected) in enumerate(zip(called.inputs, given, strict=True)):
        if not agree(found, expected):
            raise CheckFailedError(
                f"After four calls, input {place % 2 + 1} of call {place // 2 + 1} holds other numbers. Static tensors "
                "are written in each call: clone() the first inputs for them, and leave the caller's tensors alone."
            )


EXERCISE = Exercise(
    title="Replay by shape",
    kind=Kind.ANALYSIS,
    entry_point="replayed",
    points=10,
    wall_s=30,
    hints=(
        "Keep a dict from the shapes of all inputs to what a replay needs: graph, static inputs, result.",
        "At a new key: clone the inputs, warm up with the clones, put the random state back, capture with the clones.",
        "In each call: copy_ each input into its static tensor, graph.replay(), and return a clone of the result.",
    ),
    checks=(
        Check("replay equals eager", "replay", 2.5, _equal),
        Check("launches read the captured memory", "replay", 1.25, _same_memory),
        Check("the caller's tensors stay as they are", "inputs", 1.25, _unchanged),
    ),
)
