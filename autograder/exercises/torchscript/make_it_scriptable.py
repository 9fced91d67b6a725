"""Exercise 03.2: make a module with an optional argument, keyword options and a list as state scriptable."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch.nn import functional as F

from autograder.host import comparison
from autograder.host.checks.known_mistakes import Mistake, mistakes_made, options_of
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.archive import ArchiveAnswer
from autograder.host.kinds.callable import Case
from autograder.host.session import AnswerFailedError

State = dict[str, Tensor]


@dataclass
class Recall:
    """The module's formula on a state dict: the mean of the last `depth` values."""

    state: State
    depth: int
    past: list[Tensor] = field(default_factory=list)
    trims: bool = True
    remembers: bool = True
    masks: bool = True
    scales: bool = True

    def __call__(self, x: Tensor, mask: Tensor | None = None, *, scale: float = 1.0, fresh: bool = False) -> Tensor:
        """Return the mean after one call; `fresh` drops all earlier values."""
        value = F.linear(x, self.state["dense.weight"].to(x.dtype), self.state["dense.bias"].to(x.dtype))
        value = value * scale if self.scales else value
        if mask is not None and self.masks:
            value = value * mask
        if fresh or not self.remembers:
            self.past = []
        self.past.append(value)
        if self.trims:
            self.past = self.past[-self.depth :]
        total = self.past[0]
        for earlier in self.past[1:]:
            total = total + earlier
        return total / len(self.past)


MISTAKES = (
    Mistake(
        {"remembers": False},
        "The list is forgotten between calls: keep it in `self`, with its type declared in the class.",
        "state",
    ),
    Mistake({"trims": False}, "The list grows for ever: after `append`, keep its last `depth` entries only.", "state"),
    Mistake(
        {"masks": False},
        "The mask is ignored. Was the module traced without one? A trace keeps the way that its example took.",
        "masks",
    ),
    Mistake(
        {"scales": False}, "`scale` is ignored: make it an argument of its own, with its type and default.", "scales"
    ),
)


def fresh_state(draw: Draw, width: int) -> State:
    """Return random weights chosen by the host."""
    return {"dense.weight": draw.normal(width, width), "dense.bias": draw.normal(width)}


Calls = Callable[[Draw, int], Sequence[Case]]


def agrees(sequences: Sequence[tuple[int, int, Calls]], *needs: str) -> Callable[[ArchiveAnswer, Draw], None]:
    """Return a check that the scripted module, after saving and loading, gives the eager results in every call.

    Each of `sequences` is a width, a depth, and the successive calls of one loaded module. A mistake costs nothing here
    unless its option is among `needs`: what the calls are about must be there, and the rest has checks of its own.
    """

    def run(answer: ArchiveAnswer, draw: Draw) -> None:
        granted = _granted(answer, draw.shared("plain calls"), needs)
        for width, depth, made in sequences:
            state, calls = fresh_state(draw, width), made(draw, width)
            outputs = _outputs(answer, [width, depth], state, calls)
            _require(outputs, calls, Recall(state, depth, **granted), Recall(state, depth, **granted))

    return run


def _outputs(answer: ArchiveAnswer, build: list[int], state: State, calls: Sequence[Case]) -> list[tuple[Tensor, ...]]:
    try:
        return answer.run(answer.module(build, state), calls)
    except (AnswerFailedError, CheckFailedError) as error:
        if isinstance(error, AnswerFailedError) and error.fatal:
            raise
        if any(sign in str(error) for sign in ("traced_inputs", "requires grad as a constant", "Tracer", "in tracing")):
            raise CheckFailedError(f"{TRACED} ({str(error)[:200]})") from None
        raise


TRACED = (
    "The module is traced: a trace keeps the way that its example took, knows no optional arguments, and cannot keep a "
    "list. Return the module itself, or what torch.jit.script makes of it."
)


def _granted(answer: ArchiveAnswer, draw: Draw, needs: Collection[str]) -> Mapping[str, Any]:
    """Return the mistakes of an answer that other checks count, as options of `Recall`; none if they are unknown."""
    state = fresh_state(draw, 4)
    calls = [*plain(draw, 4), *masked(draw, 4), *scaled(draw, 4)]
    try:
        outputs = _outputs(answer, [4, 3], state, calls)
    except CheckFailedError:
        return {}

    def gives(options: Mapping[str, Any]) -> bool:
        wrong = Recall(state, 3, **options)
        predicted = [wrong(*case.args, **case.kwargs) for case in calls]
        return all(map(_close, outputs, predicted))

    made = mistakes_made(gives, MISTAKES) or ()
    return options_of(mistake for mistake in made if not set(mistake.options) & set(needs))


def _close(found: tuple[Tensor, ...], predicted: Tensor) -> bool:
    return len(found) == 1 and comparison.alike(found[0], predicted, atol=1e-5)


def _require(outputs: list[tuple[Tensor, ...]], calls: Sequence[Case], truth: Recall, eager: Recall) -> None:
    for number, (found, case) in enumerate(zip(outputs, calls, strict=True), 1):
        expected, exact = eager(*case.args, **case.kwargs), truth(*_double(case.args), **case.kwargs)
        if len(found) != 1:
            raise CheckFailedError(f"Call {number} returned {len(found)} tensors; expected one.")
        try:
            comparison.require_close(found[0], exact, expected, f"the output of call {number} in a row", case.where)
        except CheckFailedError as error:
            raise CheckFailedError(_explained(outputs, calls, eager.state, eager.depth) or str(error)) from None


def _double(args: Sequence[Any]) -> list[Any]:
    return [a.double() if isinstance(a, Tensor) else a for a in args]


def _explained(outputs: list[tuple[Tensor, ...]], calls: Sequence[Case], state: State, depth: int) -> str:
    """Return the sentences of the mistakes that give all of these outputs."""

    def gives(options: Mapping[str, Any]) -> bool:
        wrong = Recall(state, depth, **options)
        return all(map(_close, outputs, [wrong(*case.args, **case.kwargs) for case in calls]))

    return " ".join(mistake.says for mistake in mistakes_made(gives, MISTAKES) or ())


def plain(draw: Draw, width: int) -> list[Case]:
    """Return calls with only the first argument, more calls than the list has entries."""
    return [Case((draw.normal(2, width),), label="without mask and options") for _ in range(5)]


def masked(draw: Draw, width: int) -> list[Case]:
    """Return calls that each have a mask."""
    masks = [(draw.normal(2, width) > 0).float() for _ in range(4)]
    return [Case((draw.normal(2, width), mask), label="with a mask") for mask in masks]


def optional(draw: Draw, width: int) -> list[Case]:
    """Return calls without a mask, with a positional mask, with None, and with a keyword mask."""
    x = [draw.normal(3, width) for _ in range(4)]
    mask = (draw.normal(3, width) > 0).float()
    return [
        Case((x[0],), label="without a mask"),
        Case((x[1], mask), label="with a mask after a call without one"),
        Case((x[2], None), label="with None for the mask"),
        Case((x[3],), {"mask": mask}, label="with a mask by name"),
    ]


def scaled(draw: Draw, width: int) -> list[Case]:
    """Return calls with different scales, the last one without a scale."""
    scales: list[dict[str, float]] = [{"scale": 0.5}, {"scale": float(draw.integer(2, 9))}, {}]
    return [Case((draw.normal(2, width),), scale, label=f"with {scale or 'no option'}") for scale in scales]


def forgetting(draw: Draw, width: int) -> list[Case]:
    """Return a sequence of calls with `fresh=True` in the middle."""
    flags: list[dict[str, bool]] = [{}, {}, {"fresh": True}, {}, {"fresh": False}]
    return [Case((draw.normal(2, width),), flag, label=f"with {flag or 'no option'}") for flag in flags]


EXERCISE = Exercise(
    title="Make it scriptable",
    kind=Kind.ARCHIVE,
    entry_point="make_recall",
    points=10,
    checks=(  # with a depth of 1, no earlier value is needed
        Check(
            "it is scripted, saved, loaded, and remembers", "state", 3, agrees([(4, 3, plain)], "remembers", "trims")
        ),
        Check("masks", "options", 1.5, agrees([(4, 1, masked)], "masks")),
        Check("scales", "options", 1, agrees([(4, 1, scaled)], "scales")),
    ),
    hints=(
        "Script the module as it is and read the last lines of the message: it complains about one thing at a time.",
        "TorchScript wants a type for everything that is no Tensor: `torch.Tensor | None = None` for the mask, "
        "`scale: float = 1.0` and `fresh: bool = False` instead of **options, and the list's type in the class body.",
        "`past: list[torch.Tensor]` stands in the class body and `self.past = []` in __init__; instead of `sum` over a "
        "list, start from `torch.zeros_like(value)` and add in a `for` loop.",
    ),
)
