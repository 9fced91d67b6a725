"""Exercise 01.4: hide tokens for a masked language model, and compute its loss."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from autograder.host.checks.function_checks import agrees, gradients_agree
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.callable import CallableAnswer, Case
from autograder.host.kinds.misconceptions import Misconception, gives
from autograder.host.session import AnswerFailedError

IGNORED = -100
SELECTED, MASKED, REPLACED = 0.15, 0.8, 0.1
SIGMAS = 6.0
LETTERS, MASK, PADDING = 50, 51, 50
"""Tokens below `LETTERS` are text; the first that is none is padding, so that one letter too many is seen."""


Places = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Row, column and letter of each token that is asked for; the grader knows them, and an answer has to find them."""


def loss(logits: torch.Tensor, places: Places) -> torch.Tensor:
    """Return the mean cross-entropy over the tokens that are asked for; 0 if there are none."""
    return -logits.log_softmax(-1)[places].sum() / max(len(places[0]), 1)


def _over_everything(logits: torch.Tensor, places: Places) -> torch.Tensor:
    return loss(logits, places) * len(places[0]) / logits[..., 0].numel()


def _summed(logits: torch.Tensor, places: Places) -> torch.Tensor:
    return loss(logits, places) * len(places[0])


def _per_row(logits: torch.Tensor, places: Places) -> torch.Tensor:
    in_rows = [places[0] == row for row in range(len(logits))]
    return torch.stack([loss(logits, (places[0][i], places[1][i], places[2][i])) for i in in_rows]).mean()


def _probabilities(logits: torch.Tensor, places: Places) -> torch.Tensor:
    return loss(logits.softmax(-1), places)


MISCONCEPTIONS = (
    Misconception(_over_everything, "The sum is divided by all tokens; divide it by those that are asked for."),
    Misconception(_summed, "The losses are summed; take their mean over the tokens that are asked for."),
    Misconception(_per_row, "Each row is averaged for itself; average over all tokens that are asked for at once."),
    Misconception(_probabilities, "cross_entropy takes logits and does the softmax itself; here it came twice."),
)


@dataclass(frozen=True)
class Batch:
    """The result of one call: the tokens before, the tokens that the model sees, and the labels."""

    tokens: torch.Tensor
    hidden: torch.Tensor
    labels: torch.Tensor

    @property
    def selected(self) -> torch.Tensor:
        """Return a mask of the selected tokens."""
        return self.labels != IGNORED


def text(draw: Draw, rows: int, length: int) -> torch.Tensor:
    """Return random letters, each row padded at its end by up to a quarter of its length."""
    letters = (draw.normal(rows, length, dtype=torch.float64) * 1e6).long() % LETTERS
    ends = torch.tensor([length - draw.integer(0, length // 4) for _ in range(rows)])
    return torch.where(torch.arange(length) < ends[:, None], letters, PADDING)


def hide(answer: CallableAnswer, tokens: torch.Tensor, seed: int, *, alone: bool = False) -> Batch:
    """Call the student's function and check the properties of every result that do not depend on the rates.

    With `alone`, the function must leave the given tokens as they are, which one check counts.
    """
    case = Case((tokens, seed), {"letters": LETTERS, "mask": MASK, "padding": PADDING})
    reply = answer.call(case)
    if reply.mutated and alone:
        raise CheckFailedError("mask_tokens wrote into the tokens it was given; work on a clone.")
    if len(reply.outputs) != 2:
        raise CheckFailedError(f"mask_tokens returned {len(reply.outputs)} outputs; expected two: hidden, labels.")
    for name, tensor in zip(("hidden", "labels"), reply.outputs, strict=True):
        if tensor.shape != tokens.shape or tensor.dtype != torch.int64:
            raise CheckFailedError(
                f"{name} is a tensor of shape {tuple(tensor.shape)} and {tensor.dtype}; expected "
                f"{tuple(tokens.shape)} and int64, as the tokens."
            )
    batch = Batch(tokens, *reply.outputs)
    # check values before they are used as counts or indices, since an answer may contain any 64-bit integer
    foreign = (batch.hidden < 0) | (batch.hidden >= LETTERS) & (batch.hidden != MASK) & (batch.hidden != PADDING)
    if bool(foreign.any()):
        raise CheckFailedError("hidden holds a number that is neither a letter nor mask nor padding.")
    if bool((batch.labels[batch.selected] != tokens[batch.selected]).any()):
        raise CheckFailedError("A label is neither -100 nor the token that stood there before it was hidden.")
    if int((tokens != PADDING).sum()) >= 500 and not 0 < int(batch.selected.sum()) < 0.9 * tokens.numel():
        share = float(batch.selected.double().mean())
        raise CheckFailedError(f"labels ask for a share of {share:.2f} of the tokens; expected about 0.15.")
    return batch


def _elsewhere_untouched(answer: CallableAnswer, draw: Draw) -> None:
    for rows, length in ((32, 40), (64, 33)):
        batch = hide(answer, text(draw, rows, length), draw.integer(0, 10**6), alone=True)
        if bool((batch.hidden != batch.tokens)[~batch.selected].any()):
            raise CheckFailedError("A token changed that is not asked for: where the label is -100 it must stay.")


def require_share(found: int, of: int, share: float, what: str) -> None:
    """Raise `CheckFailedError` unless `found` of `of` is within six standard deviations of `share`."""
    spread = math.sqrt(of * share * (1 - share))
    if abs(found - of * share) > SIGMAS * spread + 1:
        raise CheckFailedError(f"{what} a share of {found / max(of, 1):.3f}; expected {share:.3f}.")


def _shares(answer: CallableAnswer, draw: Draw) -> None:
    batch = hide(answer, text(draw, 512, 128), draw.integer(0, 10**6))
    letters = batch.tokens < LETTERS
    asked = int((batch.selected & letters).sum())
    masked = int((batch.selected & (batch.hidden == MASK)).sum())
    if masked == asked > 0:
        raise CheckFailedError(
            "Every selected token is behind the mask; of 100 only 80 should be, 10 become a random letter, 10 stay. "
            "The model never sees a mask in use, so it must not learn that only masks matter."
        )
    require_share(asked, int(letters.sum()), SELECTED, "Selected is")
    require_share(masked, asked, MASKED, "Of the selected tokens, behind the mask is")
    changed = batch.selected & (batch.hidden != MASK) & (batch.hidden != batch.tokens)
    by_another = REPLACED * (1 - 1 / LETTERS)  # a random letter may equal the original one
    require_share(int(changed.sum()), asked, by_another, "Of the selected tokens, another letter is")
    counts = torch.bincount(batch.hidden[changed], minlength=LETTERS)
    for letter in (0, draw.integer(1, LETTERS - 2), LETTERS - 1):
        require_share(int(counts[letter]), int(changed.sum()), 1 / LETTERS, f"Of the random letters, {letter} is")
    half = int(counts[: LETTERS // 2].sum())
    require_share(half, int(changed.sum()), 0.5, "Of the random letters, the lower half of the alphabet is")


def _asked(draw: Draw, rows: int, length: int) -> tuple[torch.Tensor, Places]:
    """Return labels that ask for some tokens in each row, and the places of these tokens."""
    chosen = [
        (row, column) for row in range(rows) for column in draw.sample(range(length), draw.integer(2, length // 2))
    ]
    places = [torch.tensor(each) for each in zip(*chosen, strict=True)]
    letters = torch.tensor([draw.integer(0, LETTERS - 1) for _ in chosen])
    return torch.full((rows, length), IGNORED).index_put((places[0], places[1]), letters), (
        places[0],
        places[1],
        letters,
    )


def _at(places: Places, formula: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return the formula on logits and labels, whose places are known."""
    return lambda logits, labels: formula(logits, places)


def _loss(answer: CallableAnswer, draw: Draw) -> None:
    """Check the loss on the grader's own labels; wrong shares lose no points here, but `mask_tokens` must work."""
    hide(answer, text(draw, 16, 40), draw.integer(0, 10**6))
    labels, places = _asked(draw, 16, 40)

    def cases(draw: Draw) -> Iterator[Case]:
        for dtype in (torch.float64, torch.float32):
            logits = draw.normal(*labels.shape, LETTERS, dtype=dtype, scale=3.0)
            yield Case((logits, labels), label=f"in {str(dtype).removeprefix('torch.')}")

    function: Any = answer.function("masked_loss")
    known = [replace(misconception, formula=_at(places, misconception.formula)) for misconception in MISCONCEPTIONS]
    try:
        agrees(_at(places, loss), cases, ("the loss",), known)(function, draw)
    except AnswerFailedError as error:
        if error.fatal or "size" not in error.message:
            raise
        raise CheckFailedError(
            f"{error.message} Logits have the shape (batch, length, letters): flatten batch and length to one "
            "dimension, and the labels likewise, since cross_entropy expects the letters in dimension 1."
        ) from None
    gradients_agree(_at(places, loss), cases, ("the loss",), ("the logits",))(function, draw)


def loss_formula(answer: CallableAnswer, draw: Draw) -> Callable[..., torch.Tensor]:
    """Return the formula that `masked_loss` computes: the right one, or that of a mistake that another check counts.

    It takes logits and places.
    """
    shared = draw.shared("one loss")
    labels, places = _asked(shared, 8, 20)
    case = Case((shared.normal(8, 20, LETTERS, scale=3.0), labels))
    reply = answer.function("masked_loss").call(case)
    for formula in (loss, *(misconception.formula for misconception in MISCONCEPTIONS)):
        if gives(Misconception(_at(places, formula), ""), reply, case, ("the loss",)):
            return formula
    return loss


EXERCISE = Exercise(
    title="Hide tokens, and the loss of guessing them",
    kind=Kind.CALLABLE,
    entry_point="mask_tokens",
    points=10,
    masked=("course_lib.training", "transformers"),
    ready_made=("transformers.data.data_collator",),
    wall_s=60,
    checks=(
        Check("tokens that are not asked for stay", "untouched tokens", 1.5, _elsewhere_untouched),
        Check("15 of 100 selected; of these 80 masked, 10 replaced, 10 kept", "shares", 2, _shares),
        Check("the loss looks at selected tokens only", "loss", 2, _loss),
    ),
    hints=(
        "Three independent questions for each token: is it selected, what is its fate, which letter would replace it?",
        "Draw three tensors of the shape of `tokens` from one generator: two with torch.rand, one with torch.randint. "
        "Comparisons with 0.15, 0.8 and 0.9 make masks of them, and torch.where does the rest.",
        "`selected = (torch.rand(tokens.shape, generator=generator) < 0.15) & (tokens != padding)`, then "
        "`labels = torch.where(selected, tokens, -100)`.",
    ),
)
