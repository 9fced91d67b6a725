"""Hidden checks and controls of exercise 01.4."""

import math

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.transformer import mlm_batches as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.callable import CallableAnswer, Case, require_outputs
from course_lib.models import MaskedLanguageModel, TransformerConfig


def _padding(answer: CallableAnswer, draw: Draw) -> None:
    """Check that padding is never selected, and that no random replacement is padding or the mask token."""
    for tokens in (visible.text(draw, 200, 40), torch.full((20, 30), visible.PADDING)):
        if bool((tokens == visible.PADDING).all()):
            tokens[:, 0] = draw.integer(0, visible.LETTERS - 1)
        batch = visible.hide(answer, tokens, draw.integer(0, 10**6))
        padding = tokens == visible.PADDING
        if bool(batch.selected[padding].any()):
            raise CheckFailedError("Padding was selected; a model that guesses padding learns nothing about text.")
        if bool((batch.hidden[~padding] == visible.PADDING).any()) or bool((batch.hidden != tokens)[padding].any()):
            raise CheckFailedError("A letter became padding, or padding something else.")


def _seeds(answer: CallableAnswer, draw: Draw) -> None:
    """Check that the same seed gives the same batch, and another seed gives another batch."""
    tokens = visible.text(draw, 40, 50)
    first, second = draw.sample(range(10**6), 2)
    batches = [visible.hide(answer, tokens, seed) for seed in (first, second, first)]
    if not torch.equal(batches[0].hidden, batches[2].hidden) or not torch.equal(batches[0].labels, batches[2].labels):
        raise CheckFailedError("The same seed hid other tokens; draw from torch.Generator().manual_seed(seed) alone.")
    if torch.equal(batches[0].selected, batches[1].selected):
        raise CheckFailedError("Another seed hid the same tokens.")


def _independent(answer: CallableAnswer, draw: Draw) -> None:
    """Check that selections with two seeds, of neighbours, and of a token's replacement are independent."""
    tokens = visible.text(draw, 256, 100).clamp(max=visible.LETTERS - 1)
    one, two = (visible.hide(answer, tokens, seed) for seed in draw.sample(range(10**6), 2))
    # the shares themselves are another check's: here a wrong one is taken as it is
    share, count = float(one.selected.double().mean()), tokens.numel()
    both, square = int((one.selected & two.selected).sum()), share * float(two.selected.double().mean())
    visible.require_share(both, count, square, "Selected with two seeds is")
    right, below = (one.selected[:, 1:] & one.selected[:, :-1]), (one.selected[1:] & one.selected[:-1])
    visible.require_share(int(right.sum()), right.numel(), share**2, "Selected beside a selected token is")
    visible.require_share(int(below.sum()), below.numel(), share**2, "Selected below a selected token is")
    hidden = one.selected & (one.hidden == visible.MASK)
    again = hidden & two.selected & (two.hidden == visible.MASK)
    masked = float(((two.hidden == visible.MASK) & two.selected).sum()) / max(int(two.selected.sum()), 1)
    visible.require_share(int(again.sum()), int((hidden & two.selected).sum()), masked, "Masked twice is")


def _untrained(answer: CallableAnswer, draw: Draw) -> None:
    """Check that the loss of an untrained model is near log(vocabulary), and 0 if no token is selected."""
    vocabulary = visible.LETTERS + 2
    tokens = visible.text(draw, 32, 40)
    batch = visible.hide(answer, tokens, draw.integer(0, 10**6))
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(draw.integer(0, 2**31))
        sizes = TransformerConfig(16, 2, 32, 1, vocabulary, 40, 0.0)
        logits = MaskedLanguageModel(sizes).eval()(batch.hidden)
    function, formula = answer.function("masked_loss"), visible.loss_formula(answer, draw)
    case = Case((logits, batch.labels), label="of an untrained model")
    found = function.call(case).outputs
    if formula is not visible.loss:  # another check counts this mistake
        require_outputs(function.call(case), case, formula, ("the loss",))
    elif len(found) != 1 or found[0].numel() != 1 or not abs(float(found[0]) - math.log(vocabulary)) < 0.1:
        raise CheckFailedError(
            f"The loss of an untrained model is {found[0].flatten()[:1].tolist() if found else None}; expected about "
            f"log({vocabulary}) = {math.log(vocabulary):.2f}."
        )
    single = torch.full((2, 40), visible.IGNORED)
    single[1, draw.integer(0, 39)] = draw.integer(0, visible.LETTERS - 1)
    case = Case((logits[:2], single), label="where one token is asked for")
    require_outputs(function.call(case), case, formula, ("the loss",))
    empty = function.call(Case((logits[:2], torch.full_like(single, visible.IGNORED)))).outputs
    if len(empty) != 1 or empty[0].numel() != 1 or float(empty[0]) != 0:
        raise CheckFailedError("Where no token is asked for, the loss must be 0, not NaN.")


NUMBERS = "tokens are whole numbers"

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("padding", "padding", 1.1, _padding),
        Check("the seed decides all", "seeds", 1.1, _seeds),
        Check("selections are independent", "independence", 1.1, _independent),
        Check("the loss of an untrained model, and of nothing", "loss", 1.1, _untrained),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("all behind the mask", 7.6, ("fate < 0.8", "fate < 2"), ("fate >= 0.9", "fate >= 3")),
        ANSWERS.edited(
            "every seventh token",
            10,
            ("chance < 0.15", "torch.arange(tokens.numel()).view(tokens.shape) % 7 == 0"),
            below=True,
        ),
        ANSWERS.edited("one letter too many", 8.9, ("torch.randint(letters,", "torch.randint(letters + 1,")),
        ANSWERS.edited("no function for the loss", 7, ("def masked_loss", "def another_loss")),
    ),
    right_here={"one precision lower": NUMBERS, "without a gradient": NUMBERS, "in double precision, rounded": NUMBERS},
    equivalent={
        "chance < 0.15 -> chance <= 0.15": "hardly any number drawn is 0.15",
        "fate < 0.8 -> fate <= 0.8": "hardly any number drawn is 0.8",
        "fate >= 0.9 -> fate > 0.9": "hardly any number drawn is 0.9",
        "F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction='sum') -> "
        "F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction='sum')": "-100 is what it ignores anyway",
    },
)
