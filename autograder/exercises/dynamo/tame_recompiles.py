"""Exercise 07.3: rewrite programs that recompile for every length so that one graph serves all lengths."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from autograder.exercises.questions import kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer, captures
from autograder.host.kinds.differences import contrasted, same
from autograder.host.kinds.misconceptions import Misconception, named_mistake

WIDTH = 4

known_plan = kept(__name__, "known_plan")


def pair_means(x: Tensor) -> Tensor:
    """Return the means of neighbouring rows of x (length, 4); an odd last row is averaged with zeros."""
    if x.shape[0] % 2:
        x = F.pad(x, (0, 0, 0, 1))
    return x.reshape(-1, 2, WIDTH).mean(1)


def decayed_sum(x: Tensor) -> Tensor:
    """Return the sum of the rows of x (length, 4), each with half the weight of the row before it."""
    total = torch.zeros(WIDTH, dtype=x.dtype)
    for i, row in enumerate(x):
        total = total + 0.5**i * row
    return total


def faded(x: Tensor, step: Tensor) -> Tensor:
    """Scale x by 0.9 to the power of the step."""
    return x * 0.9**step


def _of(
    name: str, lengths: Sequence[int], *, dtype: torch.dtype = torch.float32
) -> tuple[Callable[[Draw], tuple[Tensor, ...]], Callable[[Draw], Iterator[Case]]]:
    def made(draw: Draw, length: int) -> tuple[Tensor, ...]:
        x = draw.normal(length, WIDTH, dtype=dtype)
        return (x, torch.tensor(float(draw.integer(0, 20)), dtype=dtype)) if name == "faded" else (x,)

    def cases(draw: Draw) -> Iterator[Case]:
        for length in lengths:
            yield Case(made(draw, length), label=f"at length {length}")

    return lambda draw: made(draw, 5), cases


REFERENCES: dict[str, Reference] = {"pair_means": pair_means, "decayed_sum": decayed_sum, "faded": faded}
MISCONCEPTIONS = {
    "pair_means": (
        Misconception(
            lambda x: x[: len(x) // 2 * 2].reshape(-1, 2, WIDTH).mean(1),
            "An odd last row was dropped; it is averaged with a row of zeros.",
        ),
        Misconception(
            lambda x: F.pad(x, (0, 0, 0, 1))[: (len(x) + 1) // 2 * 2].reshape(-1, 2, WIDTH).sum(1),
            "Neighbours were added; their mean is asked for.",
        ),
    ),
    "decayed_sum": (
        Misconception(
            lambda x: (0.5 ** torch.arange(len(x), dtype=x.dtype).flip(0)[:, None] * x).sum(0),
            "The last row weighs most; the first one should.",
        ),
    ),
    "faded": (Misconception(lambda x, step: x * 0.9 * step, "0.9 was multiplied by the step; the step is a power."),),
}


def at_lengths(name: str, lengths: Sequence[int], *, dtype: torch.dtype = torch.float32) -> Captured:
    """Return the capture of one program from five rows, with a dynamic length, and cases with other lengths."""
    example, cases = _of(name, lengths, dtype=dtype)
    return Captured(
        REFERENCES[name],
        example,
        cases,
        member=name,
        dynamic=[[0], []] if name == "faded" else [[0]],
        misconceptions=MISCONCEPTIONS[name],
    )


def random_sweep(draw: Draw, calls: int) -> Mapping[str, Any]:
    """Return the input shapes of some calls, and the dimensions that the program loops over, which stay fixed."""
    ranks = [draw.integer(1, 3) for _ in range(draw.integer(1, 3))]
    places = [[i, d] for i, rank in enumerate(ranks) for d in range(rank)]
    varied = [p for p in places if draw.chance(0.6)] or places[:1]
    base = {tuple(p): draw.integer(2, 9) for p in places}
    sweep = []
    for _ in range(calls):
        sizes = {k: draw.integer(2, 5) if list(k) in varied else v for k, v in base.items()}
        sweep.append([[sizes[i, d] for d in range(rank)] for i, rank in enumerate(ranks)])
    return {"calls": sweep, "looped": [p for p in places if draw.chance(0.3)]}


def plans(part: str, calls: Sequence[int]) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check of one part of `plan`'s result, on sweeps of the given numbers of calls."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        for question in [random_sweep(draw, n) for n in calls]:
            found, about = answer.ask(question, member="plan"), known_plan(question, part)
            expected = about["right"]
            if not isinstance(found, dict) or part not in found:
                raise CheckFailedError("plan returns a dict with the keys open and graphs.")
            if not same(found[part], expected):
                why = named_mistake(found[part], about["wrong"])
                raise CheckFailedError(
                    f"For {len(question['calls'])} calls {part} is {contrasted(found[part], expected)}. {why}"
                )

    return run


EXERCISE = Exercise(
    title="Tame recompiles",
    kind=Kind.CAPTURED,
    entry_point="tamed",
    points=10,
    hints=(
        "Look for what makes the length a Python number that decides something: an if, a loop, a power of an int.",
        "Arithmetic on a size stays open: pad by x.shape[0] % 2 rows, whatever that is; make weights with arange.",
        "In plan, collect for each dimension the set of its sizes over all calls; a set of one never changes.",
    ),
    checks=(
        *(
            Check(f"`{name}`: one graph for all lengths", word, 1.5, captures(at_lengths(name, (2, 4, 7, 12, 33))))
            for name, word in {"pair_means": "a branch", "decayed_sum": "a loop", "faded": "a number"}.items()
        ),
        Check("`plan`: what stays open", "what to open", 1, plans("open", (3, 4, 5, 6, 8, 9))),
        Check("`plan`: how many graphs", "how many graphs", 0.5, plans("graphs", (3, 4, 5, 6, 8, 9, 12))),
    ),
)
