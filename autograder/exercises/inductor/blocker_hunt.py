"""Exercise 09.4: name the edges that are not fused, and the reasons; then remove the reasons if possible."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from autograder.exercises.programs import blocked_programs as programs
from autograder.exercises.programs.loop_listings import BREAK, EXTERN, MUTATION, SIZES, VIEW, Listing, drawn
from autograder.host.checks.inductor_checks import lower_graph
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import Case, Reference
from autograder.host.kinds.captured import Captured, CapturedAnswer, require_captured, require_no_write
from autograder.host.kinds.misconceptions import Misconception
from autograder.host.point_shares import share_among
from autograder.host.session import AnswerFailedError

ROWS, COLUMNS = 6, 8

CONFUSED = {
    (SIZES, VIEW): "A reduction has fewer results than points, so its reader's loop never is the same one: size "
    "mismatch, even where both run over as many points.",
    (VIEW, SIZES): "Both loops run over as many points; multiply the sizes, also those of the loop inside. What "
    "differs is the order.",
    (MUTATION, SIZES): "Sizes were compared, but one of the two writes into memory that was there before, which comes "
    "first.",
    (MUTATION, VIEW): "Orders were compared, but one of the two writes into memory that was there before, which comes "
    "first.",
    (EXTERN, MUTATION): "A library's kernel is never opened, whatever it writes: extern kernel comes before mutation.",
    (BREAK, EXTERN): "The two are in different graphs, so the scheduler never saw them together: graph break comes "
    "first.",
    (BREAK, MUTATION): "The two are in different graphs, so the scheduler never saw them together: graph break comes "
    "first.",
}
"""Messages by pairs of reasons: the right one, and the one that was given."""


def require_named(answer: CapturedAnswer, listing: Listing) -> None:
    """Raise `CheckFailedError` unless `blockers` names exactly the unfused edges of one listing."""
    found = answer.ask(listing.loops, member="blockers")
    if not isinstance(found, list) or not all(
        isinstance(edge, list) and len(edge) == 3 and all(type(part) is str for part in edge) for edge in found
    ):
        raise CheckFailedError("blockers returns a list of [producer, consumer, reason], three texts each.")
    named = {(a, b): reason for a, b, reason in found}
    if complaint := _difference(named, listing):
        raise CheckFailedError(f"For {listing.name}: {complaint}")
    if len(found) != len(listing.edges):
        raise CheckFailedError(f"For {listing.name}: an edge was named twice. Name each once, however often it reads.")


def _difference(named: dict[tuple[str, str], str], listing: Listing) -> str:
    right = {(a, b): reason for a, b, reason in listing.edges}
    names = {loop["name"] for loop in listing.loops}
    for pair in named:
        edge = " → ".join(pair)
        if not names.issuperset(pair):
            return (
                f"{edge} names what is no loop. An edge goes from the loop that writes a buffer to one that reads it."
            )
        if pair in listing.fused:
            return f"{edge} was named, but both are in one kernel: that edge was fused."
        if pair[::-1] in right:
            return f"{edge} goes from the reader to the writer; the producer comes first."
        if pair not in right:
            return f"there is no edge {edge}: the second reads nothing that the first writes."
    for pair, reason in sorted(right.items()):
        told = " → ".join(map(listing.told, pair))
        if pair not in named:
            return f"an edge is missing: {told}."
        if named[pair] != reason:
            why = CONFUSED.get((reason, named[pair]), "")
            return f"{named[pair]!r} was given for {told}; expected {reason!r}. {why}".rstrip()
    return ""


def names(
    listings: Callable[[Draw], Sequence[Listing]], *, beside: Sequence[str] = (), together: bool = False
) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that `blockers` is right for every listing; all listings count equally.

    `beside` gives a reason for each listing that is always the same: it counts only if a drawn listing with that reason
    is right, too, so that a table of answers earns nothing. With `together`, all listings have to be right.
    """

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        def require(pair: tuple[Listing, ...]) -> None:
            for listing in pair:
                require_named(answer, listing)

        pairs: list[tuple[Listing, ...]] = [(listing,) for listing in listings(draw)]
        if beside:
            pairs = [
                (*pair, drawn(draw, [*draw.sample(WITHIN, 2), reason]))
                for pair, reason in zip(pairs, beside, strict=True)
            ]
        share_among(pairs, require, noun="listings", together=together)

    return run


@dataclass(frozen=True)
class Blocked:
    """One of the five programs, and the requirements for its repair."""

    reference: Reference
    advice: str  # the message if too many kernels are left
    misconceptions: Sequence[Misconception]
    outputs: Sequence[str] = ("the output",)
    kernels: int = 1  # the most that may be left
    writes: bool = True  # whether the graph may write, into a copy for instance

    @property
    def name(self) -> str:
        """Return the function's name in the answer."""
        return self.reference.__name__

    def inputs(self, draw: Draw, rows: int, columns: int, dtype: torch.dtype, shift: float) -> tuple[Tensor, ...]:
        """Return random inputs of the program."""
        x = draw.normal(rows, columns, dtype=dtype) + shift
        x[0] = x[0].abs() + 1  # a row whose smallest element is not zero after relu
        return (x, draw.normal(rows, dtype=dtype)) if self.reference is programs.appended else (x,)


def _whole(x: Tensor, centre: Tensor, variance: Tensor) -> Tensor:
    return (x - centre) / (variance + programs.TINY).sqrt()


BLOCKED = {
    blocked.name: blocked
    for blocked in (
        Blocked(
            programs.reported,
            "Both steps are pointwise, over the same points, and fuse once they are in one graph.",
            (
                Misconception(
                    lambda x: x.relu() / x.shape[0] ** 0.5, "The number of rows was taken; the last size is the width."
                ),
                Misconception(lambda x: x.relu() / x.shape[-1], "The width itself was taken; its root is asked for."),
            ),
        ),
        Blocked(
            programs.appended,
            "torch.cat is a loop for each of its parts. Choose for every element where it comes from, in one loop: "
            "torch.where, or torch.select_scatter.",
            (
                Misconception(
                    lambda cache, k: torch.cat([cache, k[:, None]], 1).tanh(),
                    "k became a new column; it takes the place of the last one.",
                ),
                Misconception(
                    lambda cache, k: torch.cat([k[:, None], cache[:, 1:]], 1).tanh(),
                    "k took the place of the first column; the last one is meant.",
                ),
                Misconception(lambda cache, k: cache.tanh(), "k is not in the result."),
            ),
            writes=False,
        ),
        Blocked(
            programs.turned,
            "Whoever asks for a contiguous copy asks for another order. Leave the order as it is: a transposed view "
            "of the same memory has the same values.",
            (
                Misconception(
                    lambda x: (x.exp(), x.exp().reshape(x.shape[1], x.shape[0]) + 1),
                    "reshape keeps the order of the elements and only cuts it into other rows; a transpose is meant.",
                ),
                Misconception(lambda x: (x.exp(), x.exp() + 1), "The second output is not transposed."),
            ),
            ("y", "the transpose plus one"),
        ),
        Blocked(
            programs.spread,
            "A sort is a library's kernel, and far more than is needed: ask what of the sorted row is used.",
            (
                Misconception(
                    lambda x: x.relu().amax() - x.relu().amin(), "The spread is of all of x; each row has its own."
                ),
                Misconception(
                    lambda x: x.amax(-1) - x.amin(-1), "The spread is of x; the program rectifies it before."
                ),
                Misconception(lambda x: x.relu().amax(-1), "The smallest element was not taken away."),
            ),
        ),
        Blocked(
            programs.standardised,
            "One loop can collect mean and variance together, as torch.var_mean does; the second uses them.",
            (
                Misconception(
                    lambda x: _whole(x, x.mean(), x.var()),
                    "The variance divides by one less than the number of elements; the mean of squares does not. "
                    "See the argument correction.",
                ),
                Misconception(
                    lambda x: _whole(x, x.mean(-1, keepdim=True), x.var(-1, keepdim=True, correction=0)),
                    "Each row was standardised by itself; there is one mean for all of x.",
                ),
            ),
            kernels=2,
        ),
    )
}


CANCELLED = (
    "These numbers lie far from zero. If nearer ones come out right, the mean of squares less the square of the mean "
    "was taken, two numbers that are almost equal: take the mean away first."
)


def sized(
    name: str, *sizes: tuple[int, int], dtype: torch.dtype = torch.float32, shift: float = 0.0
) -> Iterator[Captured]:
    """Yield the capture of one program for each of the sizes."""
    blocked = BLOCKED[name]
    for rows, columns in sizes:

        def inputs(draw: Draw, rows: int = rows, columns: int = columns) -> tuple[Tensor, ...]:
            return blocked.inputs(draw, rows, columns, dtype, shift)

        def cases(draw: Draw, inputs: Callable[[Draw], Any] = inputs, label: str = f"{rows} x {columns}") -> list[Case]:
            return [Case(inputs(draw), label=f"for {label}") for _ in range(2)]

        yield Captured(
            blocked.reference,
            inputs,
            cases,
            blocked.outputs,
            member=name,
            misconceptions=blocked.misconceptions,
            reason=CANCELLED if shift else "",
        )


def fuses(*wanted: Captured) -> Callable[[CapturedAnswer, Draw], None]:
    """Return a check that each graph gives the right values, in as few kernels as possible."""

    def run(answer: CapturedAnswer, draw: Draw) -> None:
        share_among(
            wanted,
            lambda each: _require_fused(answer, each, draw),
            noun="functions",
            where=lambda each: each.told,
        )

    return run


def _require_fused(answer: CapturedAnswer, wanted: Captured, draw: Draw) -> None:
    blocked = BLOCKED[wanted.member]
    artifact = require_captured(answer, wanted, draw)
    if not blocked.writes:  # the write is the blocker that is to be removed
        require_no_write(answer, artifact, wanted.example(draw), wanted.told)
    try:
        left = lower_graph(answer.clean, artifact, wanted.example(draw)).fused_loops
    except AnswerFailedError as error:
        raise CheckFailedError(f"{wanted.told}{error.message[:300]}") from None
    answer.counted |= {f"{blocked.name}_kernels": left, f"{blocked.name}_kernels_minimum": blocked.kernels}
    if left > blocked.kernels:
        raise CheckFailedError(
            f"{wanted.told}the values are right, but in the sizes asked for here Inductor makes {left} kernels of it; "
            f"{_counted(blocked.kernels)} enough. {blocked.advice}"
        )


def _counted(kernels: int) -> str:
    return {1: "one is", 2: "two are"}[kernels]


WITHIN = (EXTERN, MUTATION, VIEW, SIZES)  # reasons inside one graph
WORDS = {"reported": BREAK, "appended": MUTATION, "turned": VIEW, "spread": EXTERN, "standardised": SIZES}
"""The programs, in the order of `known_listings`, each with the reason why it is not fused."""


def five(draw: Draw) -> list[Listing]:
    """Return the scheduler's listings of the five programs at random sizes."""
    return list(programs.known_listings(draw.integer(3, 90), draw.integer(3, 90)).values())


def short(draw: Draw) -> list[Listing]:
    """Return listings with two or three edges."""
    return [drawn(draw, draw.sample((*WITHIN, SIZES), n)) for n in (2, 2, 2, 3, 3)]


EXERCISE = Exercise(
    title="Blocker hunt",
    kind=Kind.CAPTURED,
    entry_point="hunted",
    points=10,
    hints=(
        "In a listing, look up for every buffer which loop writes it; an edge is a reader of it in another kernel.",
        "Ask for the reasons in the order of the table and return at the first that holds; sizes come last, as all "
        "that is left. For the programs, ask what each result is made of, and write just that.",
        "What was printed is left out; a new last column is torch.where on a column number; largest and smallest are "
        "amax and amin; torch.var_mean collects both in one loop.",
    ),
    checks=(
        Check("`blockers` on the five programs", "the five programs", 1, names(five, beside=tuple(WORDS.values()))),
        Check("`blockers` on short listings", "short listings", 0.5, names(short)),
        *(
            Check(f"`{name}` fuses as far as it can", word, 1, fuses(*sized(name, (ROWS, COLUMNS))))
            for name, word in WORDS.items()
        ),
    ),
)
