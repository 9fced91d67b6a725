"""Hidden checks and controls of exercise 13.5."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autograder.exercises.attention.choose_attention import (
    ASKS,
    TRAINS,
    Drawn,
    chooses,
    few_tokens,
    many_tokens,
    needed,
    short_of_room,
    two_blocks,
    with_part_of_room,
    with_room,
    with_spare_room,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Question
from autograder.host.draw import Draw
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

Need = Question
BLOCK = 128  # the default of `create_block_mask`


@dataclass(frozen=True)
class Variant:
    """What one variant can do for a need, and what it costs."""

    able: bool
    why: str  # the reason, if it is not able
    scores: int = 0
    extra_bytes: int = 0


def kept_scores(need: Need) -> int:
    """Return how many scores a pattern keeps for one head."""
    if need["pattern"] == "all":
        return int(need["length"]) ** 2
    parts = need["documents"] if need["pattern"] == "documents" else [need["length"]]
    return sum(part * (part + 1) // 2 for part in parts)


def block_scores(need: Need) -> int:
    """Return how many scores FlexAttention computes for one head: all those of each block that is not empty."""
    length = int(need["length"])
    parts = need["documents"] if need["pattern"] == "documents" else [length]
    blocks, begin = set(), 0
    for part in parts:
        own = range(begin // BLOCK, (begin + part - 1) // BLOCK + 1)
        blocks |= {(query, key) for query in own for key in own if key <= query or need["pattern"] == "all"}
        begin += part
    return len(blocks) * BLOCK**2


def variants(need: Need) -> dict[str, Variant]:
    """Return all variants in the order in which equal costs are decided."""
    square, kept = need["length"] ** 2, kept_scores(need)
    drops = need["dropout"] and need["device"] == "cpu"
    fused = not need["shares"] and not drops
    trains_here = need["trains"] and need["device"] == "cpu"
    mask_bytes = 4 * need["heads"] * square if need["scores"] == "alibi" else 5 * square
    why_not_fused = (
        "No fused kernel returns the probabilities." if need["shares"] else "With dropout on a CPU, PyTorch falls back "
        "to math, which holds all scores."
    )  # fmt: skip
    return {
        "sdpa": Variant(
            fused and need["scores"] == "plain" and need["pattern"] != "documents",
            why_not_fused if not fused else "sdpa alone knows no documents, and leaves scores as they are.",
            kept,
        ),
        "mask": Variant(
            fused and need["scores"] != "soft cap",
            why_not_fused if not fused else "A mask is added to scores; a soft cap is no sum.",
            square,
            mask_bytes,
        ),
        "flex": Variant(
            not (need["shares"] or need["dropout"] or trains_here),
            "FlexAttention gives no gradients on a CPU."
            if trains_here
            else "FlexAttention has no dropout and returns no probabilities.",
            block_scores(need),
        ),
        "tiles": Variant(
            not need["shares"] and not need["dropout"], "The tiles have no dropout, and keep no probabilities.", kept
        ),
        "dense": Variant(True, "", square, 8 * need["batch"] * need["heads"] * square),
    }


FUSED = ("sdpa", "mask", "flex")


def chosen(need: Need, changed: Callable[[str, Variant], Variant] = lambda _, variant: variant) -> str:
    """Return the variant to choose; `changed` makes a known mistake in what is known of one."""
    found = {name: changed(name, variant) for name, variant in variants(need).items()}
    fits = {name: v for name, v in found.items() if v.able and v.extra_bytes <= need["free"]}
    best = min((n for n in FUSED if n in fits), key=lambda n: (fits[n].scores, fits[n].extra_bytes), default="")
    return best or next((name for name in ("tiles", "dense") if name in fits), "none")


def bytes_of(need: Need) -> dict[str, int]:
    """Return the extra memory of each variant."""
    return {name: variant.extra_bytes for name, variant in variants(need).items()}


def _with(need: Need, **values: Any) -> str:
    return chosen({**need, **values})


def _free(name: str) -> Callable[[str, Variant], Variant]:
    return lambda which, variant: replace(variant, extra_bytes=0) if which == name else variant


MISCONCEPTIONS = (
    Misconception(
        lambda n: _with(n, trains=False),
        "The gradients were left out: on a CPU, FlexAttention refuses tensors that require them.",
    ),
    Misconception(
        lambda n: _with(n, device="cuda"),
        "On a CPU, dropout leads to math, and FlexAttention has no gradients; it was chosen as on a GPU.",
    ),
    Misconception(lambda n: _with(n, device="cpu", trains=True), "What a CPU lacks was taken away on a GPU, too."),
    Misconception(lambda n: _with(n, dropout=0.0), "The dropout was left out; only sdpa, mask and dense have it."),
    Misconception(lambda n: _with(n, shares=False), "The probabilities are wanted; only dense has them."),
    Misconception(lambda n: chosen(n, _free("mask")), "The mask takes memory: 5 bytes a score, or 4 for each head."),
    Misconception(lambda n: chosen(n, _free("dense")), "Scores and probabilities of all heads take memory."),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, extra_bytes=5 * n["length"] ** 2) if w == "mask" else v),
        "A mask with ALiBi holds numbers of four bytes, and another one for each head.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, extra_bytes=n["length"] ** 2) if w == "mask" else v),
        "SDPA makes a mask of numbers out of one of truth values: together they take five bytes each.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, scores=kept_scores(n)) if w == "flex" else v),
        "flex computes whole blocks of 128 x 128, not only the scores that are kept.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, scores=0) if w == "flex" else v),
        "flex was taken wherever it can; at this length its blocks hold more scores than there are pairs.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, extra_bytes=v.extra_bytes // 2) if w == "dense" else v),
        "dense holds two tensors of that size at once: the scores, and the probabilities.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, scores=0) if w == "mask" else v),
        "A mask hides scores that were computed: it saves none.",
    ),
)


def known(need: Need) -> Mapping[str, Any]:
    """Return the variant to choose, the choices of known mistakes, and why a variant cannot be chosen."""
    right, found = chosen(need), variants(need)
    why = {name: _costly(right) if variant.able else variant.why for name, variant in found.items()}
    why["none"] = f"{right} can do this, and what it takes is at most what is free."
    return {"right": right, "wrong": wrong_values(need, MISCONCEPTIONS), "why": why}


def _costly(right: str) -> str:
    if right == "none":
        return "Nothing that can do this fits into what is free."
    if right in FUSED:
        return f"{right} can do this and is fused; of the fused ones it computes the fewest scores, then takes least."
    return f"{right} can do this and fits, and takes less than what comes behind it; no fused one does."


def at_an_edge(beyond: int) -> Drawn:
    """Return a function that draws documents, of which one ends so many tokens beyond the edge of the first block.

    At the edge two blocks are computed, elsewhere three, and all pairs lie between two and three blocks.
    """

    def drawn(draw: Draw) -> Need:
        length, first = draw.integer(182, 220), draw.integer(20, 60)
        documents = [first, BLOCK + beyond - first, length - BLOCK - beyond]
        return needed(pattern="documents", length=length, documents=documents, **ASKS)(draw)

    return drawn


def _whole_blocks(draw: Draw) -> int:
    """Draw a length at which blocks hold as many scores as there are pairs, so that the bytes decide."""
    return draw.choice((BLOCK, 2 * BLOCK))


ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check(
            "masks of numbers",
            "memory",
            0.5,
            chooses(
                with_room("mask", 0, scores="alibi", **TRAINS),
                with_room("mask", 1, scores="alibi", **TRAINS),
                with_room("mask", 0, scores="alibi", pattern="documents", **TRAINS),
                with_room("mask", 1, device="cuda", dropout=0.1, pattern="documents"),
                with_spare_room("mask", scores="alibi", **TRAINS),
                short_of_room("mask", scores="alibi", pattern="documents", **TRAINS),
                with_part_of_room("mask", scores="alibi", **TRAINS),
            ),
        ),
        Check(
            "several needs at once",
            "combinations",
            1,
            chooses(
                needed(scores="soft cap", pattern="documents", device="cuda", trains=True),
                needed(scores="alibi", dropout=0.2, device="cuda", pattern="causal"),
                needed(scores="soft cap", dropout=0.2, **TRAINS),
                needed(scores="alibi", pattern="documents", **TRAINS),
            ),
        ),
        Check(
            "documents in blocks",
            "blocks",
            1,
            chooses(
                *(at_an_edge(beyond) for beyond in (-1, 0, 0, 1)),
                needed(scores="alibi", length=_whole_blocks, **ASKS),
                needed(pattern="documents", length=few_tokens, **ASKS),
                needed(scores="alibi", pattern="documents", length=many_tokens, **ASKS),
                needed(scores="alibi", pattern="causal", length=two_blocks, **ASKS),
            ),
        ),
        Check(
            "little memory",
            "memory",
            0.5,
            chooses(
                needed(free=0, pattern="causal", **TRAINS),
                needed(free=0, dropout=0.1, device="cpu"),
                needed(free=0, scores="alibi", **TRAINS),
                needed(free=0, scores="soft cap", trains=False),
                with_room("dense", 0, dropout=0.3, device="cpu"),
                with_spare_room("dense", dropout=0.3, device="cpu"),
            ),
        ),
    ),
    equivalent={"fewest = 0: 0 -> 1": "no other variant computes fewer scores than sdpa"},
    right_here={"text": "the answer is a text"},
    controls=(
        ANSWERS.reference(8),
        ANSWERS.file("rules in order", 8),
        ANSWERS.file("a sorted table", 8),
        ANSWERS.edited(
            "sorted",
            8,
            ("min(best, key=lambda name: able[name][1:])", "sorted(best, key=lambda name: able[name][1:])[0]"),
        ),
        ANSWERS.edited("turned round", 8, ("extra <= need['free']", "not extra > need['free']")),
        ANSWERS.edited("sizes as products", 8, ("need['length'] ** 2", "need['length'] * need['length']")),
        *(
            Control(f"always {v}", f"def choose(need):\n    return {v!r}\n", 0)
            for v in ("sdpa", "flex", "dense", "none")
        ),
        ANSWERS.edited(
            "flex trains on a CPU", 5, ("undropped and (not (need['trains'] and on_cpu))", "undropped"), below=True
        ),
        ANSWERS.edited("flex never trains", 7.5, ("not (need['trains'] and on_cpu)", "not need['trains']"), below=True),
        ANSWERS.edited(
            "dropout is fused on a CPU", 6.5, ("not need['shares'] and (undropped or not on_cpu)", "not need['shares']")
        ),
        ANSWERS.edited("dropout is never fused", 6, ("(undropped or not on_cpu)", "undropped")),
        ANSWERS.edited("flex drops", 5.5, ("fused and undropped and", "fused and")),
        ANSWERS.edited(
            "tiles drop", 5, ("(undropped and (not need['shares']), square, 0)", "(not need['shares'], square, 0)")
        ),
        ANSWERS.edited("probabilities from anywhere", 6, ("not need['shares'] and (undropped", "(undropped")),
        ANSWERS.edited("masks are free", 4, ("square, mask_bytes)", "square, 0)")),
        ANSWERS.edited(
            "bytes for every mask",
            7.5,
            ("4 * need['heads'] * square if need['scores'] == 'alibi' else 5 * square", "5 * square"),
        ),
        ANSWERS.edited("one byte for a truth value", 5.5, ("else 5 * square", "else square")),
        ANSWERS.edited("flex wherever it can", 5.5, ("128 ** 2 * len(blocks)", "0"), below=True),
        ANSWERS.edited("never flex where a mask can", 5.5, ("128 ** 2 * len(blocks)", "128 * square"), below=True),
        ANSWERS.edited(
            "blocks of 64",
            7.5,
            ("begin // 128, (begin + tokens - 1) // 128", "begin // 64, (begin + tokens - 1) // 64"),
            ("128 ** 2", "64 ** 2"),
            below=True,
        ),
        ANSWERS.edited("each document from an edge", 7.5, ("begin += tokens", "pass"), below=True),
        ANSWERS.edited("upper blocks, too", 6.5, ("if key <= query or need['pattern'] == 'all'", ""), below=True),
        ANSWERS.edited("one head's mask", 7.5, ("4 * need['heads'] * square if", "4 * square if")),
        ANSWERS.edited("one matrix of scores", 7, ("8 * need['batch']", "4 * need['batch']")),
        ANSWERS.edited("no batch", 7, ("8 * need['batch'] * need['heads']", "8 * need['heads']")),
        ANSWERS.edited("less than free", 6, ("extra <= need['free']", "extra < need['free']")),
        ANSWERS.edited("a mask caps", 6, ("fused and need['scores'] != 'soft cap'", "fused")),
        ANSWERS.edited(
            "sdpa knows documents", 2.5, ("fused and plain and (need['pattern'] != 'documents')", "fused and plain")
        ),
    ),
)
