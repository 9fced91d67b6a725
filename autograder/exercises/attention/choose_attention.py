"""Exercise 13.5: choose the cheapest variant of attention that computes what is needed, on the device that is there."""

from collections.abc import Callable, Mapping
from typing import Any

from autograder.exercises.questions import Question, kept
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.misconceptions import named_mistake
from autograder.host.kinds.value import ValueAnswer

VARIANTS = ("sdpa", "mask", "flex", "tiles", "dense", "none")
Need = Question
Drawn = Callable[[Draw], Need]

known = kept(__name__, "known")
bytes_of = kept(__name__, "bytes_of")


def needed(**values: Any) -> Drawn:
    """Return a function that draws a need with these entries; memory is plenty if they do not say otherwise.

    An entry may be a function that draws it.
    """

    def drawn(draw: Draw) -> Need:
        need: Need = {
            "device": draw.choice(("cpu", "cuda")),
            "trains": draw.chance(0.5),
            "batch": draw.integer(2, 16),
            "heads": draw.choice((2, 4, 12)),
            "length": draw.integer(64, 4096),
            "pattern": "all",
            "scores": "plain",
            "dropout": 0.0,
            "shares": False,
            "free": 1 << 50,
            **{name: value(draw) if callable(value) else value for name, value in values.items()},
        }
        if need["pattern"] == "documents":
            need.setdefault("documents", _documents(draw, need["length"]))
        return need

    return drawn


def _documents(draw: Draw, length: int) -> list[int]:
    first = draw.integer(1, length - 2)
    second = draw.integer(1, length - first - 1)
    return [first, second, length - first - second]


def with_room(variant: str, missing: int, **values: Any) -> Drawn:
    """Return a function that draws a need with just the memory that a variant takes, less some bytes."""

    def drawn(draw: Draw) -> Need:
        need = needed(**values)(draw)
        return {**need, "free": bytes_of(need)[variant] - missing}

    return drawn


def with_spare_room(variant: str, **values: Any) -> Drawn:
    """Return a function that draws a need with more memory than a variant takes, by a drawn number of bytes."""

    def drawn(draw: Draw) -> Need:
        need = needed(**values)(draw)
        return {**need, "free": bytes_of(need)[variant] + draw.integer(1, need["length"] - 1)}

    return drawn


def short_of_room(variant: str, **values: Any) -> Drawn:
    """Return a function that draws a need with less memory than a variant takes, by whole rows or matrices.

    So the free bytes have the factors of the bytes that fit, and no division tells which ones fit.
    """

    def drawn(draw: Draw) -> Need:
        need = needed(**values)(draw)
        taken, square = bytes_of(need)[variant], need["length"] ** 2
        unit = square if taken > square else need["length"]
        return {**need, "free": taken - unit * draw.integer(1, min(4, taken // unit - 1))}

    return drawn


def with_part_of_room(variant: str, **values: Any) -> Drawn:
    """Return a function that draws a need with some quarters of the memory that a variant takes.

    So the free bytes are as many matrices for each head as the variant may take, and only their number tells that it
    does not fit.
    """

    def drawn(draw: Draw) -> Need:
        need = needed(**values)(draw)
        return {**need, "free": bytes_of(need)[variant] // 4 * draw.integer(1, 3)}

    return drawn


TRAINS = {"device": "cpu", "trains": True}


def few_tokens(draw: Draw) -> int:
    """Draw a length at which whole blocks compute more scores than there are pairs."""
    return draw.integer(70, 110)


def two_blocks(draw: Draw) -> int:
    """Draw a length at which three blocks compute fewer scores than there are pairs, and four more."""
    return draw.integer(222, 250)


def many_tokens(draw: Draw) -> int:
    """Draw a length at which whole blocks leave out more scores than they add."""
    return draw.integer(300, 4096)


PATTERNS = (
    needed(),
    needed(pattern="causal"),
    needed(pattern="documents", device="cuda", trains=True),
    needed(pattern="documents", trains=False),
    needed(pattern="documents", **TRAINS),
)
SCORES = (
    needed(scores="alibi", device="cuda", trains=True),
    needed(scores="alibi", trains=False, pattern="causal"),
    needed(scores="alibi", **TRAINS),
    needed(scores="soft cap", **TRAINS),
    needed(scores="soft cap", trains=False),
)
EXTRAS = (
    needed(dropout=0.1, device="cpu"),
    needed(dropout=0.1, device="cuda"),
    needed(dropout=0.1, device="cuda", pattern="documents"),
    needed(dropout=0.1, device="cuda", scores="soft cap"),
    needed(shares=True),
    needed(shares=True, scores="alibi", pattern="causal"),
    needed(shares=True, dropout=0.1, pattern="documents"),
    needed(dropout=0.1, device="cpu", scores="alibi", pattern="documents"),
)
ASKS: Mapping[str, Any] = {"device": "cuda", "trains": False}
BLOCKS = (
    needed(pattern="documents", length=few_tokens, **ASKS),
    needed(pattern="documents", length=many_tokens, **ASKS),
    needed(pattern="causal", scores="alibi", length=few_tokens, **ASKS),
    needed(pattern="causal", scores="alibi", length=two_blocks, **ASKS),
    needed(scores="alibi", length=two_blocks, **ASKS),
    needed(pattern="causal", length=few_tokens, **ASKS),
    with_room("mask", 1, pattern="documents", length=few_tokens, **ASKS),
)
MEMORY = (
    with_room("mask", 0, pattern="documents", **TRAINS),
    with_room("mask", 1, pattern="documents", **TRAINS),
    with_room("dense", 0, shares=True),
    with_room("dense", 1, shares=True),
    with_spare_room("mask", pattern="documents", **TRAINS),
    short_of_room("mask", pattern="documents", **TRAINS),
    with_spare_room("dense", shares=True),
    short_of_room("dense", shares=True),
    with_part_of_room("dense", shares=True),
)


def chooses(*needs: Drawn) -> Callable[[ValueAnswer, Draw], None]:
    """Return a check that the right variant is chosen for every need, asked in random order."""

    def run(answer: ValueAnswer, draw: Draw) -> None:
        for drawn in draw.sample(needs, len(needs)):
            _require_chosen(answer, drawn(draw))

    return run


def _require_chosen(answer: ValueAnswer, need: Need) -> None:
    found, about = answer.ask(need), known(need)
    if type(found) is not str or found not in VARIANTS:
        raise CheckFailedError(f"choose returned {repr(found)[:80]}; expected one of {', '.join(VARIANTS)}.")
    if found != about["right"]:
        why = named_mistake(found, about["wrong"]) or about["why"].get(found, "")
        raise CheckFailedError(f"{_told(need)}: chose {found!r}; expected {about['right']!r}. {why}".strip())


def _told(need: Mapping[str, Any]) -> str:
    """Return a need in a few words."""
    told = [f"On {need['device']}", "with gradients" if need["trains"] else "without gradients"]
    told.append(f"batch {need['batch']}, {need['heads']} heads, length {need['length']}, pattern {need['pattern']}")
    told += [f"scores {need['scores']}"] * (need["scores"] != "plain")
    told += [f"dropout {need['dropout']}"] * bool(need["dropout"]) + ["probabilities wanted"] * need["shares"]
    return ", ".join([*told, f"{need['free']:,} bytes free"])


EXERCISE = Exercise(
    title="Choose a variant of attention",
    kind=Kind.VALUE,
    entry_point="choose",
    points=8,
    wall_s=20,
    hints=(
        "Make a table in code: for each variant whether it can do what is needed, how many scores it computes, and how "
        "many bytes it takes. For flex, make the set of its pairs of blocks: a document from token a to token b is in "
        "the blocks from a // 128 to (b - 1) // 128.",
        "Strike out what cannot: no fused kernel gives probabilities, only sdpa and mask drop, and they "
        "are fused on CUDA only; flex gives no gradients on a CPU. Then strike out what does not fit.",
        "min over the fused ones that are left, by (scores, bytes, place in the list); without one of them tiles, then "
        "dense, then none.",
    ),
    checks=(
        Check("patterns", "patterns", 1, chooses(*PATTERNS)),
        Check("modified scores", "scores", 1, chooses(*SCORES)),
        Check("dropout and probabilities", "dropout", 1, chooses(*EXTRAS)),
        Check("memory that just fits, and memory that does not", "memory", 1, chooses(*MEMORY)),
        Check("scores that are computed in blocks", "blocks", 1, chooses(*BLOCKS)),
    ),
)
