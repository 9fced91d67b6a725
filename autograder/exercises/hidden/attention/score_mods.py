"""Hidden checks and controls of exercise 13.4."""

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import create_block_mask

from autograder.exercises.attention.score_mods import Sizes, blocks_right, modifies, packed, unpacked
from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.questions import Known, Question
from autograder.host.draw import Draw
from autograder.host.exercise import Check, HiddenPart
from autograder.host.kinds.captured import CapturedAnswer
from autograder.host.kinds.misconceptions import Misconception, wrong_values

Mask = Callable[[Tensor, Tensor], Tensor]


def _mask(asked: Question) -> Mask:
    """Return a function of the numbers of query and key."""
    if asked["mask"] == "causal":
        return lambda q, k: k <= q
    if asked["mask"] == "window":
        return lambda q, k: (k <= q) & (q - k <= asked["window"])
    ids = torch.repeat_interleave(torch.arange(len(asked["documents"])), torch.tensor(asked["documents"]))
    return lambda q, k: (ids[q] == ids[k]) & (k <= q)


def block_counts(asked: Question) -> dict[str, int]:
    """Return the numbers of full, partial and empty blocks, as PyTorch counts them."""
    mask, length = _mask(asked), asked["length"]
    made = create_block_mask(
        lambda b, h, q, k: mask(q, k), None, None, length, length, device="cpu", BLOCK_SIZE=asked["block"]
    )
    full, partial = int(made.full_kv_num_blocks.sum()), int(made.kv_num_blocks.sum())  # type: ignore[union-attr]
    side = -(-length // asked["block"])
    return {"full": full, "partial": partial, "empty": side * side - full - partial}


def _cut(asked: Question, *, cut_is_partial: bool = True, diagonal_is_full: bool = False) -> dict[str, int]:
    """Return the numbers of blocks, counted in a dense mask."""
    length, block = asked["length"], asked["block"]
    order = torch.arange(length)
    dense = _mask(asked)(order[:, None], order)
    found = {"full": 0, "partial": 0, "empty": 0}
    for rows in dense.split(block, 0):
        for part in rows.split(block, 1):
            whole = part.numel() == block * block or not cut_is_partial
            kind = "full" if part.all() and whole else "partial" if part.any() else "empty"
            found["full" if kind == "partial" and diagonal_is_full else kind] += 1
    return found


def _without(asked: Question, kind: str) -> dict[str, int]:
    return _cut({**asked, "mask": "causal"} if asked["mask"] == kind else asked)


def _both_ways(asked: Question) -> dict[str, int]:
    ends = list(accumulate(asked["documents"]))
    ids = torch.bucketize(torch.arange(asked["length"]), torch.tensor(ends), right=True)
    dense = ids[:, None] == ids
    parts = [part for rows in dense.split(asked["block"], 0) for part in rows.split(asked["block"], 1)]
    full = sum(bool(p.all()) and p.numel() == asked["block"] ** 2 for p in parts)
    empty = sum(not p.any() for p in parts)
    return {"full": full, "partial": len(parts) - full - empty, "empty": empty}


MISCONCEPTIONS = (
    Misconception(
        lambda a: _cut(a, diagonal_is_full=True),
        "Blocks of which only a part is kept were counted as full; for them the mask is computed score by score.",
    ),
    Misconception(
        lambda a: _cut(a, cut_is_partial=False),
        "A block that the end of the sequence cuts off is never full: its scores beyond the end are masked.",
    ),
    Misconception(
        lambda a: _without(a, "window"), "The window was not taken into account: q - k is at most the window."
    ),
    Misconception(
        lambda a: _cut({**a, "window": a["window"] - 1}),
        "The window is one too short: a query sees itself and that many keys before it.",
    ),
    Misconception(lambda a: _without(a, "documents"), "The documents were not taken into account; only causal was."),
    Misconception(_both_ways, "The mask of documents is causal, too: a token sees its document up to itself."),
)


def counted(asked: Question) -> Known:
    """Return the numbers of blocks of a mask, and those of known mistakes."""
    return {"right": block_counts(asked), "wrong": wrong_values(asked, MISCONCEPTIONS)}


Formula = Callable[..., Tensor]  # of a parameter, the score where there is one, batch, head, query and key
FORMULAS: dict[str, tuple[Formula, Sequence[tuple[Formula, str]]]] = {
    "alibi": (
        lambda slopes, score, b, h, q, k: score - slopes[h] * (q - k).abs(),
        (
            (lambda slopes, score, b, h, q, k: score + slopes[h] * (q - k).abs(),
             "Far keys are favoured: the distance is taken away from the score."),
            (lambda slopes, score, b, h, q, k: score + slopes[h] * (k - q),
             "Keys after the query are favoured. Take the distance as it is in both directions, by abs."),
            (lambda slopes, score, b, h, q, k: score - slopes[0] * (q - k).abs(),
             "All heads have the slope of head 0; look it up by the number of the head."),
            (lambda slopes, score, b, h, q, k: score - slopes.view(1, -1, 1, 1) * (q - k).abs(),
             "The slopes were taken in their own order; look each up by the number of the head, slopes[head]."),
            (lambda slopes, score, b, h, q, k: score - (q - k).abs(),
             "The slope is missing; each head has its own."),
            (lambda slopes, score, b, h, q, k: score * slopes[h] - (q - k).abs(),
             "The slope multiplies the score; it belongs to the distance."),
        ),
    ),
    "soft_cap": (
        lambda cap, score, b, h, q, k: cap * torch.tanh(score / cap),
        (
            (lambda cap, score, b, h, q, k: torch.tanh(score / cap),
             "The cap is missing outside: tanh lies between -1 and 1, the result between -cap and cap."),
            (lambda cap, score, b, h, q, k: cap * torch.tanh(score),
             "Small scores are changed: divide by the cap inside, so that near 0 the score stays as it is."),
            (lambda cap, score, b, h, q, k: score.clamp(-cap, cap),
             "This is a hard cap, whose gradient is 0 beyond it; a soft one uses tanh."),
        ),
    ),
    "documents": (
        lambda ids, b, h, q, k: (ids[b, q] == ids[b, k]) & (k <= q),
        (
            (lambda ids, b, h, q, k: ids[b, q] == ids[b, k],
             "Keys after the query are kept; within a document, a token sees itself and those before it."),
            (lambda ids, b, h, q, k: (k <= q), "Documents see each other: compare the numbers of both tokens."),
            (lambda ids, b, h, q, k: (ids[0, q] == ids[0, k]) & (k <= q),
             "Every row has the documents of row 0; look them up by the number of the batch."),
            (lambda ids, b, h, q, k: (ids[:, None, : q.shape[2], None] == ids[:, None, None, : k.shape[3]]) & (k <= q),
             "The documents were taken in their own order; look each token's up by its numbers, ids[batch, query]."),
            (lambda ids, b, h, q, k: (ids[b, q] == ids[b, k]) & (k < q),
             "A token does not see itself; then a document's first token sees nothing at all."),
            (lambda ids, b, h, q, k: (ids[b, q] == ids[b, k]) & (k >= q),
             "The order is the wrong way round: a token sees keys before it."),
            (lambda ids, b, h, q, k: ~((ids[b, q] == ids[b, k]) & (k <= q)),
             "The mask is upside down: a mask_mod is True where a score is kept."),
        ),
    ),
}  # fmt: skip


def changed(name: str, inputs: Sequence[str], shape: Sequence[int]) -> Known:
    """Return all scores, or all of a mask, as a function of the answer changes them, and as known mistakes do.

    Tensors go in and out as text. Right scores are fp64, those of mistakes fp16: a mistake is known by 1 % of them.
    """
    right, mistakes = FORMULAS[name]
    exact = [each.double() if each.is_floating_point() else each for each in map(unpacked, inputs)]
    wrong = [(formula(*exact).expand(*shape), says) for formula, says in mistakes]
    return {
        "right": packed(right(*exact).expand(*shape)),
        "wrong": [[packed(each.half() if each.is_floating_point() else each), says] for each, says in wrong],
    }


ANSWERS = Answers(__name__)


def _double(answer: CapturedAnswer, draw: Draw) -> None:
    for name in ("alibi", "soft_cap"):
        modifies(name, Sizes(1, 4, 6, 3), dtype=torch.float64)(answer, draw)


def _alone(answer: CapturedAnswer, draw: Draw) -> None:
    for name in ("alibi", "soft_cap"):
        modifies(name, Sizes(1, 1, 1, 9), scale=60.0)(answer, draw)


HIDDEN = HiddenPart(
    checks=(
        Check("`alibi` and `soft_cap` in double precision", "precision", 0.5, _double),
        Check("one head, one row", "other sizes", 0.5, _alone),
        Check("documents of a long batch", "documents", 1, modifies("documents", Sizes(5, 2, 33, 33))),
        Check("`blocks` of windows and documents", "blocks", 1, blocks_right("window", "documents")),
        Check("`blocks` that a sequence's end cuts off", "blocks", 1, blocks_right("causal", "window", whole=False)),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.file("by intervals", 10),
        ANSWERS.file("the library counts", 10),  # the section teaches this call
        ANSWERS.edited("a maximum of both", 10, ("(query - key).abs()", "torch.maximum(query - key, key - query)")),
        ANSWERS.edited(
            "a hidden mask turned round",
            10,
            ("== ids[batch, key]) & (key <= query)", "== ids[batch, key]) & ~(key > query)"),
        ),
        ANSWERS.edited("a product with the sign", 10, ("(query - key).abs()", "(query - key) * (query - key).sign()")),
        ANSWERS.edited(
            "a product that is added",
            10,
            (
                "score - slopes[head] * (query - key).abs()",
                "torch.addcmul(score, slopes.take(head), (query - key).abs().to(slopes.dtype), value=-1)",
            ),
        ),
        ANSWERS.edited(
            "a quotient of sinh and cosh",
            10,
            ("torch.tanh(score / cap)", "(score / cap).sinh() / (score / cap).cosh()"),
        ),
        ANSWERS.edited("counts are tensors", 10, ("'full': full", "'full': torch.tensor(full)")),
        ANSWERS.edited("abs by a function", 10, ("(query - key).abs()", "torch.abs(key - query)")),
        ANSWERS.edited("a product with the inverse", 10, ("score / cap", "score * (1 / cap)")),
        ANSWERS.edited("in another order", 10, ("(key <= query)", "(query >= key)")),
        ANSWERS.edited(
            "a difference",
            10,
            ("ids[batch, query] == ids[batch, key]", "(ids[batch, query] - ids[batch, key]).abs() < 1"),
        ),
        ANSWERS.edited("far keys are favoured", 7.5, ("score - slopes", "score + slopes")),
        ANSWERS.edited("only keys before", 7.5, ("(query - key).abs()", "(query - key)")),
        ANSWERS.edited("one slope for all", 8, ("slopes[head]", "slopes[0]")),
        ANSWERS.edited("no slope", 7.5, ("slopes[head] * ", "")),
        ANSWERS.edited("no cap outside", 8, ("cap * torch.tanh", "torch.tanh")),
        ANSWERS.edited("no cap inside", 8, ("score / cap", "score")),
        ANSWERS.edited("no tensor at all", 8, ("return cap * torch.tanh(score / cap)", "return ()")),
        ANSWERS.edited("a hard cap", 8, ("cap * torch.tanh(score / cap)", "score.clamp(-cap, cap)")),
        ANSWERS.edited(
            "documents in order", 7.5, ("ids[batch, query] == ids[batch, key]", "ids[batch, query] >= ids[batch, key]")
        ),
        ANSWERS.edited("not causal", 7.5, (" & (key <= query)", "")),
        ANSWERS.edited("not itself", 7.5, ("key <= query", "key < query")),
        ANSWERS.edited(
            "documents of row 0", 7.5, ("ids[batch, query] == ids[batch, key]", "ids[0, query] == ids[0, key]")
        ),
        ANSWERS.edited(
            "upside down",
            7.5,
            (
                "return (ids[batch, query] == ids[batch, key]) & (key <= query)",
                "return (ids[batch, query] != ids[batch, key]) | (key > query)",
            ),
        ),
        ANSWERS.edited("cut blocks are full", 9, (" and part.numel() == block ** 2", "")),
        ANSWERS.edited("no window", 8, ("question.get('window', length)", "length")),
        ANSWERS.edited(
            "a window too short",
            10,  # by the windows that are drawn, one or both checks notice it
            ("distance <= question.get('window', length)", "distance < question.get('window', length)"),
            below=True,
        ),
        ANSWERS.edited("no documents", 9, ("kept = kept & (ids[:, None] == ids)", "pass")),
        ANSWERS.edited(
            "adds up a row",
            7.5,
            ("return score - slopes[head]", "return score - score.sum(-1, keepdim=True) * 0 - slopes[head]"),
        ),
    ),
    right_here={"one precision lower": "a mask is no number, and stays right"},
)
