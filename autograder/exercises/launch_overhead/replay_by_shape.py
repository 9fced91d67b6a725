"""Exercise 15.2: capture a function once for each shape, and replay it."""

from collections.abc import Sequence

import torch

from autograder.exercises.programs import replayed_runs
from autograder.exercises.programs.launch_machine import Call as MachineCall
from autograder.exercises.programs.launch_machine import LaunchMachine, require_replays
from autograder.exercises.questions import Question
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import Report, entries

LARGEST_SEED = 10**6
NEAR = 1e-5  # the same operators give the same numbers; a machine may sum in another order
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


def agree(found: torch.Tensor, expected: torch.Tensor) -> bool:
    """Tell whether a tensor has the shape and the values of another."""
    alike = (found.shape, found.dtype.is_floating_point) == (expected.shape, expected.dtype.is_floating_point)
    return alike and torch.allclose(found, expected.detach().to(found.dtype), rtol=NEAR, atol=NEAR)


class Called:
    """The calls of an answer's function: their launches came as data, and ran again on inputs that were drawn then.

    With `equal` the new inputs of all calls with the same shapes are equal.
    """

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        steps: Sequence[str],
        calls: Sequence[Call],
        *,
        equal: bool = False,
    ) -> None:
        self.steps = list(steps)
        report = entries(answer.employ(replayed_runs, "call_in_turn", steps=self.steps, calls=[*calls]))
        require_tensors(report, "replayed(function) returns a function of the same inputs")
        seed = draw.integer(0, LARGEST_SEED)
        self.calls = [drawn_again(draw, call) | ({"seed": seed} if equal else {}) for call in calls]
        self.inputs = [tensor for call in self.calls for tensor in replayed_runs.inputs(call)]
        seeds = [call["draws"] for call in self.calls if call["draws"] is not None]
        self.machine = LaunchMachine(report, self.inputs, seeds)
        if len(self.machine.calls) != len(self.calls):
            raise MalformedAnswerError
        self.outputs = [call.output for call in self.machine.calls]

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
        """Raise `CheckFailedError` unless calls with known shapes replay the same graph; see `require_replays`."""
        known: dict[str, list[MachineCall]] = {}
        for call, found in zip(self.calls, self.machine.calls, strict=True):
            known.setdefault(str(call["shapes"]), []).append(found)
        for calls in known.values():
            require_replays(calls[1:], len(self.steps))

    def require_equal(self, index: int, why: str) -> None:
        """Raise `CheckFailedError` unless the output of a call was right when it came back."""
        found = self.outputs[index]
        if agree(found, self.expected(index)):
            return
        shapes = " and ".join(str(tuple(each)) for each in self.calls[index]["shapes"])
        about = f"Call {index + 1}, with inputs of shapes {shapes}, gives"
        if found.shape != self.expected(index).shape:
            raise CheckFailedError(f"{about} shape {tuple(found.shape)}. Keep one graph for each shape of the inputs.")
        if not found.isfinite().all():
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


def require_tensors(report: Report, made: str) -> None:
    """Raise `CheckFailedError` if the answer returned no function, or its function no tensor."""
    if "class" in report:
        raise CheckFailedError(
            f"Expected a function that returns a tensor, and got a {str(report['class'])[:40]}. {made}; that one "
            "returns the tensor."
        )


def drawn_again(draw: Draw, call: Call) -> Call:
    """Return a call with other numbers and another seed."""
    return call_of(draw, *call["shapes"], draws=None if call["draws"] is None else draw.integer(0, LARGEST_SEED))


def alike(draw: Draw, count: int) -> list[Call]:
    """Return calls whose inputs have the same shapes."""
    shape = size_of(draw)
    return [call_of(draw, shape, shape) for _ in range(count)]


def _equal(answer: AnalysisAnswer, draw: Draw) -> None:
    called = Called(answer, draw, steps_of(draw), alike(draw, 4))
    for index in range(len(called.calls)):
        called.require_equal(index, "copy_ every input into its static tensor, replay, and return the result.")
    called.require_replay()


def _unchanged(answer: AnalysisAnswer, draw: Draw) -> None:
    called = Called(answer, draw, steps_of(draw), alike(draw, 4))
    called.require_replay()
    require_unchanged(called)


def require_unchanged(called: Called) -> None:
    """Raise `CheckFailedError` unless all inputs hold at the end what they held at first."""
    for place, expected in enumerate(called.inputs):
        if not agree(called.machine.given(place), expected):
            raise CheckFailedError(
                f"After four calls, input {place % 2 + 1} of call {place // 2 + 1} holds other numbers. Static tensors "
                "are written in each call: clone() the first inputs for them, and leave the caller's tensors alone."
            )


def _random_calls(answer: AnalysisAnswer, draw: Draw, *, seeded: int) -> Called:
    """Return calls with dropout, which leaves some of so many numbers; the seed is set before the call `seeded`."""
    shape = [draw.integer(5, 8), draw.integer(6, 9)]
    calls = [call_of(draw, shape, shape) for _ in range(3)]
    calls[seeded]["draws"] = draw.integer(0, LARGEST_SEED)
    called = Called(answer, draw, steps_of(draw, "drop"), calls)
    called.require_replay()
    return called


def _random_numbers(answer: AnalysisAnswer, draw: Draw) -> None:
    _random_calls(answer, draw, seeded=2).require_equal(
        2, "With the same seed a replay draws the same dropout mask as an eager call: set no seed or state in a replay."
    )
    _random_calls(answer, draw, seeded=0).require_equal(
        0, "A warm-up draws random numbers: read torch.get_rng_state() before it, and set this state again after it."
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
        Check("replay equals eager", "replay", 1, _equal),
        Check("random numbers of a replay", "random state", 3, _random_numbers),
        Check("the caller's tensors stay as they are", "inputs", 1.5, _unchanged),
    ),
)
