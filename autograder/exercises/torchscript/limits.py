"""Exercise 03.6: determine from the evidence which limit of TorchScript a program has reached."""

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from autograder.exercises.questions import Question
from autograder.exercises.torchscript.predict_capture import captured_by
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.kinds.value import ValueAnswer

Evidence = Question
"""The observations: {"capture", "error", "warnings", "same_on_example", "same_on_others", "same_in_evaluation",
"calls_seen"}. "calls_seen" counts how often the program's Python code ran in two calls after capture, 2 in eager mode.
"""

LIMITS = {
    "frozen branch": "The trace asked an `if` once. Its warning speaks of a Python boolean; other inputs differ.",
    "frozen number": "A number left torch and came back a constant. The warning speaks of a Python float or integer.",
    "frozen mode": "Nothing warns: the trace kept `self.training` as it was, so evaluation differs.",
    "lost effect": "All outputs agree, but what the program did besides, in Python, happens no more.",
    "outside the language": "The compiler names a construct of Python that TorchScript does not have.",
    "unknown type": "The compiler took a value for something that it is not, mostly for a Tensor.",
    "none": "Everything agrees, and what Python did besides still happens or there was nothing.",
}
_SEEN: list[int] = []


def count_call() -> None:
    """Count a call of a program, as Python's code does besides; a capture does not repeat it."""
    _SEEN.append(1)


@dataclass(frozen=True)
class Snippet:
    """A program, how it is captured, and the limit that it reaches."""

    program: Callable[[], Callable[..., Any]]
    capture: str
    limit: str


def branch_on_sum(x: torch.Tensor) -> torch.Tensor:
    """Ask for the sign of the sum."""
    count_call()
    return x * 2 if x.sum() > 0 else x - 1


def branch_on_largest(x: torch.Tensor) -> torch.Tensor:
    """Ask whether the largest number is the first."""
    count_call()
    if x[0, 0] == x.max():
        return -x
    return x


def item_out(x: torch.Tensor) -> torch.Tensor:
    """Take a number out of a tensor."""
    count_call()
    return x * float(x.sum())


def int_out(x: torch.Tensor) -> torch.Tensor:
    """Take a whole number out of a tensor."""
    count_call()
    return x + int(x.abs().max() * 10)


class Noisy(nn.Module):
    """Another result in training."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale in training only."""
        count_call()
        return x * self.factor if self.training else x


class Compiled(nn.Module):
    """Inside the language: a branch and an attribute."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Scale if the sum is positive."""
        if x.sum() > 0 or self.training:
            return x * self.factor
        return x


def counts(x: torch.Tensor) -> torch.Tensor:
    """Arithmetic, and something besides."""
    count_call()
    return torch.tanh(x) + 1


def plain(x: torch.Tensor) -> torch.Tensor:
    """Arithmetic and nothing else."""
    return torch.relu(x) / x.shape[0]


def inner_function(x: torch.Tensor) -> torch.Tensor:
    """A function inside a function."""

    def double(y: torch.Tensor) -> torch.Tensor:
        return y * 2

    return double(x)


def set_of_sizes(x: torch.Tensor) -> torch.Tensor:
    """A set."""
    return x * len({i // 2 for i in range(4)})


def guarded(x: torch.Tensor) -> torch.Tensor:
    """Try and except."""
    try:
        return x / 2
    except ZeroDivisionError:
        return x


def options(x: torch.Tensor, **more: float) -> torch.Tensor:
    """Any keyword."""
    return x * 2


def untyped_list(x: torch.Tensor) -> torch.Tensor:
    """An empty list of numbers."""
    sizes = []
    sizes.append(x.shape[0])
    return x * len(sizes)


def untyped_table(x: torch.Tensor) -> torch.Tensor:
    """An empty dict with numbers for keys."""
    table = {}
    table[2] = x
    return table[2]


SNIPPETS: Mapping[str, tuple[Snippet, ...]] = {
    "traces": (
        Snippet(lambda: branch_on_sum, "trace", "frozen branch"),
        Snippet(lambda: branch_on_largest, "trace", "frozen branch"),
        Snippet(lambda: item_out, "trace", "frozen number"),
        Snippet(lambda: int_out, "trace", "frozen number"),
        Snippet(lambda: plain, "trace", "none"),
    ),
    "silent traces": (
        Snippet(lambda: Noisy(2.0), "trace", "frozen mode"),
        Snippet(lambda: Noisy(-1.0), "trace", "frozen mode"),
        Snippet(lambda: counts, "trace", "lost effect"),
        Snippet(lambda: plain, "trace", "none"),
    ),
    "scripts": (
        Snippet(lambda: inner_function, "script", "outside the language"),
        Snippet(lambda: set_of_sizes, "script", "outside the language"),
        Snippet(lambda: guarded, "script", "outside the language"),
        Snippet(lambda: options, "script", "outside the language"),
        Snippet(lambda: untyped_list, "script", "unknown type"),
        Snippet(lambda: untyped_table, "script", "unknown type"),
        Snippet(lambda: plain, "script", "none"),
        Snippet(lambda: Compiled(3.0), "script", "none"),
    ),
}


@functools.cache
def evidence(snippet: Snippet) -> Evidence:
    """Capture a snippet, and return the observations."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program = snippet.program()
        example, other = torch.tensor([[2.0, 1.0], [0.5, 0.0]]), torch.tensor([[-3.0, -1.0], [0.5, 0.25]])
        seen: Evidence = {"capture": snippet.capture, "error": "", "warnings": []}
        try:
            captured = captured_by(program, snippet.capture, example)
        except Exception as error:  # compilers raise many types
            return (
                seen | {"error": f"{type(error).__name__}: {_without_places(str(error))}"} | dict.fromkeys(AGREEMENTS)
            )
        seen["warnings"] = [_without_places(str(w.message)) for w in caught if "Tracer" in w.category.__name__]
        return seen | _agreements(program, captured, example, other)


AGREEMENTS = ("same_on_example", "same_on_others", "same_in_evaluation", "calls_seen")


def _agreements(program: Any, captured: Any, example: torch.Tensor, other: torch.Tensor) -> Evidence:
    _SEEN.clear()
    found = {"same_on_example": _same(captured(example), program(example))}
    found["same_on_others"] = _same(captured(other), program(other))
    counted = len(_SEEN) - 2  # the eager program ran twice, if it counts calls
    if isinstance(program, nn.Module):
        program.eval()
        captured.eval()
    found["same_in_evaluation"] = _same(captured(example), program(example))
    return found | {"calls_seen": max(counted, 0) if _SEEN else None}


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return bool(torch.equal(a, b))


def _without_places(text: str) -> str:
    """Return the text of a message without file paths, at most 2,000 characters."""
    lines = [line for line in text.splitlines() if line.strip() and "File " not in line]
    return " ".join(" ".join(lines).split())[:2000]


def told_apart(snippets: Sequence[Snippet]) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the answer names the limit of each snippet, in random order."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for snippet in draw.sample(snippets, len(snippets)):
            seen = evidence(snippet)
            found = answer.ask(seen)
            if found != snippet.limit:
                raise CheckFailedError(f"{_short(seen)} was called {repr(found)[:60]}. {_why(found, seen)}")

    return run


def _why(found: Any, seen: Evidence) -> str:
    for misconception in MISCONCEPTIONS:
        if misconception.formula(seen) == found:
            return misconception.says
    said = LIMITS.get(found, "") if isinstance(found, str) else ""
    return f"{found!r} would mean: {said}" if said else f"The names are {', '.join(LIMITS)}."


MISCONCEPTIONS = (
    Misconception(
        lambda seen: "none" if not seen["warnings"] and not seen["error"] else "",
        "Silence was taken for success: a trace can be wrong without a warning. Look at what agrees, and calls_seen.",
    ),
    Misconception(
        lambda seen: "lost effect" if seen["calls_seen"] == 0 else "",
        "calls_seen is 0 after every trace of a program that counts; look first whether the outputs agree.",
    ),
    Misconception(
        lambda seen: "frozen branch" if seen["warnings"] else "",
        "Not every warning is about a branch: read which Python type the tensor was converted to.",
    ),
    Misconception(
        lambda seen: "outside the language" if seen["error"] else "",
        "Not every error is about syntax: the compiler may know the construct and expect another type.",
    ),
)


def _short(seen: Evidence) -> str:
    said = seen["error"] or "; ".join(seen["warnings"]) or "no message"
    agreements = ", ".join(f"{key}={seen[key]}" for key in AGREEMENTS)
    return f"A {seen['capture']} with {agreements} ({said[:600]})"


EXERCISE = Exercise(
    title="Which limit was it?",
    kind=Kind.VALUE,
    entry_point="which_limit",
    points=4,
    wall_s=20,
    checks=(
        Check("traces that warn, and one without fault", "traces", 1, told_apart(SNIPPETS["traces"])),
        Check("scripts", "scripts", 1, told_apart(SNIPPETS["scripts"])),
        Check("traces without a warning", "silence", 0.5, told_apart(SNIPPETS["silent traces"])),
    ),
    hints=(
        "Sort by what is there: an error, a warning, a difference, or nothing of all that.",
        "With an error it is a script. Does the message name something unsupported, or does it find a value of another "
        "type than it expected?",
        'With `same_on_others` False look for "Python boolean" in the warnings. With True look at same_in_evaluation, '
        "then whether calls_seen is 0.",
    ),
)
