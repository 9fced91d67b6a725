"""Hidden checks and controls of exercise 13.5."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from autograder.exercises.attention.choose_attention import (
    TRAINS,
    chooses,
    needed,
    short_of_room,
    with_part_of_room,
    with_room,
    with_spare_room,
)
from autograder.exercises.hidden.answer_files import Answers
from autograder.host.exercise import Check, Control, HiddenPart
from autograder.host.kinds.misconceptions import Misconception, wrong_values

Need = Mapping[str, Any]


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


def variants(need: Need) -> dict[str, Variant]:
    """Return all variants in the order in which equal costs are decided."""
    square, kept = need["length"] ** 2, kept_scores(need)
    drops = need["dropout"] and need["device"] == "cpu"
    fused = not need["shares"] and not drops
    trains_here = need["trains"] and need["device"] == "cpu"
    mask_bytes = 4 * need["heads"] * square if need["scores"] == "alibi" else square
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
            kept,
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
    Misconception(lambda n: chosen(n, _free("mask")), "The mask takes memory: a byte a score, or four for each head."),
    Misconception(lambda n: chosen(n, _free("dense")), "Scores and probabilities of all heads take memory."),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, extra_bytes=n["length"] ** 2) if w == "mask" else v),
        "A mask with ALiBi holds numbers of four bytes, and another one for each head.",
    ),
    Misconception(
        lambda n: chosen(n, lambda w, v: replace(v, extra_bytes=4 * v.extra_bytes) if w == "mask" else v),
        "A mask of truth values takes one byte each.",
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


ANSWERS = Answers(__name__)
KEPT = "kept = sum((n * (n + 1) // 2 for n in need.get('documents', [need['length']])))"

HIDDEN = HiddenPart(
    checks=(
        Check(
            "masks of numbers",
            "memory",
            1.2,
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
            "little memory",
            "memory",
            1,
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
    equivalent={
        **dict.fromkeys(
            (
                "if need['pattern'] != 'all': -> if False:",
                "if need['pattern'] != 'all': -> if True:",
                "if need['pattern'] != 'all': 'all' -> 'all_'",
                f"{KEPT} -> pass",
                f"{KEPT}: 1 -> 2",
                f"{KEPT}: 2 -> 3",
                "lambda name: able[name][1:]: 1 -> 2",
            ),
            "of the fused variants, the one with more scores also takes more bytes, so scores decide nothing alone",
        )
    },
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
        ANSWERS.edited("a float of scores", 8, ("sum((n * (n + 1) // 2", "sum((n * (n + 1) / 2")),
        ANSWERS.edited("sizes as products", 8, ("need['length'] ** 2", "need['length'] * need['length']")),
        ANSWERS.edited("half a square", 8, ("n * (n + 1) // 2", "(n * n + n) // 2")),
        *(
            Control(f"always {v}", f"def choose(need):\n    return {v!r}\n", 0)
            for v in ("sdpa", "flex", "dense", "none")
        ),
        ANSWERS.edited("flex trains on a CPU", 1.2, ("undropped and (not (need['trains'] and on_cpu))", "undropped")),
        ANSWERS.edited("flex never trains", 4.6, ("not (need['trains'] and on_cpu)", "not need['trains']")),
        ANSWERS.edited(
            "dropout is fused on a CPU", 5.8, ("not need['shares'] and (undropped or not on_cpu)", "not need['shares']")
        ),
        ANSWERS.edited("dropout is never fused", 5.8, ("(undropped or not on_cpu)", "undropped")),
        ANSWERS.edited("flex drops", 4.6, ("fused and undropped and", "fused and")),
        ANSWERS.edited(
            "tiles drop", 3.6, ("(undropped and (not need['shares']), kept, 0)", "(not need['shares'], kept, 0)")
        ),
        ANSWERS.edited("probabilities from anywhere", 5.6, ("not need['shares'] and (undropped", "(undropped")),
        ANSWERS.edited("masks are free", 3.4, ("square, mask_bytes)", "square, 0)")),
        ANSWERS.edited(
            "bytes for every mask",
            6.8,
            ("4 * need['heads'] * square if need['scores'] == 'alibi' else square", "square"),
        ),
        ANSWERS.edited("one head's mask", 6.8, ("4 * need['heads'] * square if", "4 * square if")),
        ANSWERS.edited("one matrix of scores", 6.8, ("8 * need['batch']", "4 * need['batch']")),
        ANSWERS.edited("no batch", 6.8, ("8 * need['batch'] * need['heads']", "8 * need['heads']")),
        ANSWERS.edited("less than free", 4.6, ("extra <= need['free']", "extra < need['free']")),
        ANSWERS.edited("a mask caps", 5.6, ("fused and need['scores'] != 'soft cap'", "fused")),
        ANSWERS.edited(
            "sdpa knows documents", 3.2, ("fused and plain and (need['pattern'] != 'documents')", "fused and plain")
        ),
    ),
)
