"""Hidden checks and controls of exercise 01.4."""

import math
from collections.abc import Callable, Sequence

import torch

from autograder.exercises.hidden.answer_files import Answers
from autograder.exercises.transformer import mlm_batches as visible
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, HiddenPart
from autograder.host.kinds.callable import CallableAnswer, Case, require_outputs
from course_lib.models import MaskedLanguageModel, TransformerConfig

HALF = visible.LETTERS // 2
MOVED_SIGMAS = 10.0  # the largest of 25,599 comparisons, which by chance is 4 to 7


def _padding(answer: CallableAnswer, draw: Draw) -> None:
    """Check that padding is never selected, and that no random replacement is padding or the mask token."""
    for tokens in (visible.text(draw, 600, 100), torch.full((20, 30), visible.PADDING)):
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
    _alone(answer, tokens, (first, second))


def _alone(answer: CallableAnswer, tokens: torch.Tensor, seeds: Sequence[int]) -> None:
    """Check that batches made at the same time do not change each other, as they do with one generator for all."""
    names = {"letters": visible.LETTERS, "mask": visible.MASK, "padding": visible.PADDING}
    try:
        pairs = answer.call_concurrently([Case((tokens, seed), names) for seed in seeds])
    except CheckFailedError:
        return  # it writes into the tokens, which another check counts
    for one, other in pairs:
        if any(not torch.equal(a, b) for a, b in zip(one.outputs, other.outputs, strict=True)):
            raise CheckFailedError(
                "A batch depends on another one that is made at the same time, as by several threads of a data loader. "
                "Draw from a torch.Generator() of the call alone; torch.manual_seed(seed) seeds one that all share."
            )


def _independent(answer: CallableAnswer, draw: Draw) -> None:
    """Check that selections with two seeds, of neighbours, and of a token's replacement are independent."""
    tokens = _skewed(draw, 256, 100)
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
    _token_by_token(one)
    _nowhere_again(one)
    _batch_by_batch(answer, draw)


def _skewed(draw: Draw, rows: int, length: int) -> torch.Tensor:
    """Return text without padding, in which three of four letters are of the lower half of the alphabet."""
    letters = visible.text(draw, rows, length).clamp(max=visible.LETTERS - 1)
    return torch.where(draw.keep(rows, length, probability=0.5), letters % HALF, letters)


def _token_by_token(batch: visible.Batch) -> None:
    """Check that selection, fate and new letter of a token depend neither on its place nor on its letter."""
    masked, changed = batch.selected & (batch.hidden == visible.MASK), _changed(batch)
    rows, columns = (torch.arange(n) for n in batch.tokens.shape)
    groups = {
        "row": rows[:, None].expand_as(batch.tokens),
        "column": columns.expand_as(batch.tokens),
        "letter": batch.tokens,
    }
    every = torch.ones_like(batch.selected)
    for name, group in groups.items():
        if _dispersion(batch.selected, every, group) > visible.SIGMAS:
            raise CheckFailedError(f"Whether a token is selected depends on its {name}; draw for each token by itself.")
        if _dispersion(masked, batch.selected, group) > visible.SIGMAS:
            raise CheckFailedError(
                f"Whether a selected token is behind the mask depends on its {name}; draw for each token by itself."
            )
        _require_other_letters(batch.hidden[changed], group[changed], f"of one {name}")
    lower, as_before = (int((each[changed] < HALF).sum()) for each in (batch.hidden, batch.tokens))
    total = int(changed.sum())
    if abs(lower - as_before) < abs(lower - total / 2):
        raise CheckFailedError(
            f"A share of {lower / max(total, 1):.2f} of the random letters is of the lower half of the alphabet, as in "
            "the text; expected 0.50. Draw them from all numbers below `letters`, not from the tokens."
        )


def _nowhere_again(batch: visible.Batch) -> None:
    """Check that neither selections nor fates come again at another place, as where one draw serves several rows."""
    selected = batch.selected.double()
    masked = (batch.selected & (batch.hidden == visible.MASK)).double()
    share = masked.sum() / selected.sum().clamp(min=1)
    for what, numbers in (("selected", selected - selected.mean()), ("masked", masked - share * selected)):
        spectrum = torch.fft.rfft2(numbers).abs() ** 2
        products = torch.fft.irfft2(spectrum, s=numbers.shape)  # with the same numbers, moved by rows and columns
        most = products.flatten()[1:].max() / numbers.square().mean().clamp(min=1e-9) / math.sqrt(numbers.numel())
        if most > MOVED_SIGMAS:
            row, column = divmod(1 + int(products.flatten()[1:].argmax()), numbers.shape[1])
            raise CheckFailedError(
                f"The places of {what} tokens come again {row} rows and {column} columns further on; draw for each "
                "token by itself."
            )


def _batch_by_batch(answer: CallableAnswer, draw: Draw) -> None:
    """Check that the numbers of selected and of masked tokens vary from batch to batch, and letters of a place, too."""
    tokens = visible.text(draw, 10, 40).clamp(max=visible.LETTERS - 1)
    batches = [visible.hide(answer, tokens, seed) for seed in draw.sample(range(10**6), 40)]
    selected, hidden = (torch.stack([getattr(b, name) for b in batches]) for name in ("selected", "hidden"))
    number = torch.arange(len(batches))[:, None, None].expand_as(selected)
    told = "{} vary by {:.1f} standard deviations less than those of independent draws; decide for each token by itself"
    for hit, of, what in (
        (selected, torch.ones_like(selected), "numbers of selected tokens in a batch"),
        (selected & (hidden == visible.MASK), selected, "shares of masked tokens in a batch"),
    ):
        spread = _dispersion(hit, of, number)
        if spread < -visible.SIGMAS:
            raise CheckFailedError(f"The {told.format(what, -spread)}.")
    changed = torch.stack([_changed(b) for b in batches])
    place = torch.arange(tokens.numel()).view(tokens.shape).expand_as(selected)
    _require_other_letters(hidden[changed], place[changed], "at one place, with different seeds,")


def _changed(batch: visible.Batch) -> torch.Tensor:
    return batch.selected & (batch.hidden != visible.MASK) & (batch.hidden != batch.tokens)


def _dispersion(hit: torch.Tensor, of: torch.Tensor, group: torch.Tensor) -> float:
    """Return by how many standard deviations the counts of `hit` among `of` vary more from group to group than chance.

    It is the cube root of chi-square over its degrees of freedom, which is nearly normal (Wilson and Hilferty).
    """
    sizes = torch.bincount(group[of]).double()
    counts = torch.bincount(group[hit & of], minlength=len(sizes)).double()[sizes > 0]
    sizes = sizes[sizes > 0]
    share = float(counts.sum() / sizes.sum())
    if not 0 < share < 1 or len(sizes) < 2:
        return 0.0  # the shares are another check's
    squares = float(((counts - share * sizes) ** 2 / (sizes * share * (1 - share))).sum())
    narrow = 2 / (9 * (len(sizes) - 1))
    return float(((squares / (len(sizes) - 1)) ** (1 / 3) - 1 + narrow) / math.sqrt(narrow))


def _require_other_letters(letters: torch.Tensor, group: torch.Tensor, where: str) -> None:
    """Check that two tokens of a group become the same random letter no more often than by chance."""
    together = (group[:, None] == group).triu(1)
    pairs, equal = int(together.sum()), int((together & (letters[:, None] == letters)).sum())
    by_chance = pairs / visible.LETTERS
    if equal > 2 * by_chance + visible.SIGMAS * math.sqrt(by_chance) + 3:
        raise CheckFailedError(
            f"Of {pairs} pairs of replaced tokens {where} {equal} became the same letter; by chance about "
            f"{by_chance:.0f} do. Draw a letter for each token."
        )


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
        require_outputs(function.call(case), case, _on_labels(formula), ("the loss",))
    elif len(found) != 1 or found[0].numel() != 1 or not abs(float(found[0]) - math.log(vocabulary)) < 0.1:
        raise CheckFailedError(
            f"The loss of an untrained model is {found[0].flatten()[:1].tolist() if found else None}; expected about "
            f"log({vocabulary}) = {math.log(vocabulary):.2f}."
        )
    single = torch.full((2, 40), visible.IGNORED)
    single[1, draw.integer(0, 39)] = draw.integer(0, visible.LETTERS - 1)
    case = Case((logits[:2], single), label="where one token is asked for")
    require_outputs(function.call(case), case, _on_labels(formula), ("the loss",))
    empty = function.call(Case((logits[:2], torch.full_like(single, visible.IGNORED)))).outputs
    if len(empty) != 1 or empty[0].numel() != 1 or float(empty[0]) != 0:
        raise CheckFailedError("Where no token is asked for, the loss must be 0, not NaN.")


def _on_labels(formula: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a formula of logits and places as one of logits and labels."""

    def on_labels(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        rows, columns = (labels != visible.IGNORED).nonzero(as_tuple=True)
        return formula(logits, (rows, columns, labels[rows, columns]))

    return on_labels


NUMBERS = "tokens are whole numbers"
SELECTED, FATE = (
    "selected = (chance < 0.15) & (tokens != padding)",
    "fate = torch.rand(tokens.shape, generator=generator)",
)
CHANCE = "chance = torch.rand(tokens.shape, generator=generator)"
LETTERS_DRAWN = "torch.randint(letters, tokens.shape, generator=generator)"
EXACTLY = """count = round(0.15 * int((tokens != padding).sum()))
    order = chance.masked_fill(tokens == padding, 2.0).flatten().argsort()
    selected = torch.zeros(tokens.numel(), dtype=torch.bool).index_fill(0, order[:count], True).view(tokens.shape)"""

ANSWERS = Answers(__name__)

HIDDEN = HiddenPart(
    checks=(
        Check("padding", "padding", 1, _padding),
        Check("the seed decides all", "seeds", 1, _seeds),
        Check("selections are independent", "independence", 1, _independent),
        Check("the loss of an untrained model, and of nothing", "loss", 1.5, _untrained),
    ),
    controls=(
        ANSWERS.reference(10),
        ANSWERS.edited("all behind the mask", 8, ("fate < 0.8", "fate < 2"), ("fate >= 0.9", "fate >= 3")),
        ANSWERS.edited(
            "every seventh token",
            10,
            ("chance < 0.15", "torch.arange(tokens.numel()).view(tokens.shape) % 7 == 0"),
            below=True,
        ),
        ANSWERS.edited("exactly 15 of 100", 9, (SELECTED, EXACTLY)),
        ANSWERS.edited(
            "a letter for each column",
            9.5,
            (LETTERS_DRAWN, "torch.randint(letters, tokens.shape[1:], generator=generator).expand(tokens.shape)"),
            below=True,  # with few columns, their letters are no even share either
        ),
        ANSWERS.edited("the next letter", 9, (LETTERS_DRAWN, "(tokens + 1) % letters")),
        ANSWERS.edited("a fate for each letter", 9, (FATE, "fate = ((tokens * 7 + seed) % 10) / 10 + 0.05")),
        ANSWERS.edited("one draw for both", 10, (FATE, "fate = chance / 0.15")),
        ANSWERS.edited(
            "letters of the text",
            9,
            (
                LETTERS_DRAWN,
                "tokens[tokens != padding]["
                + LETTERS_DRAWN[:-1].replace("letters,", "int((tokens != padding).sum()),")
                + ")]",
            ),
        ),
        ANSWERS.edited(
            "one generator for all",
            9,
            ("torch.Generator().manual_seed(seed)", "torch.default_generator.manual_seed(seed)"),
        ),
        ANSWERS.edited("rows come again", 9, (CHANCE, CHANCE + "[torch.arange(len(tokens)) // 2 * 2]")),
        ANSWERS.edited("selected by letter", 9, (CHANCE, CHANCE + " + (tokens % 2 * 0.1 - 0.05)")),
        ANSWERS.edited("one letter too many", 9, ("torch.randint(letters,", "torch.randint(letters + 1,")),
        ANSWERS.edited(
            "a complex loss of nothing",
            8.5,
            ("return total /", "return (1j if (labels == -100).all() else 1) * total /"),
        ),
        ANSWERS.edited("no function for the loss", 6.5, ("def masked_loss", "def another_loss")),
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
