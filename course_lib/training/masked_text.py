"""Mask bytes for a model to predict, and define the parts of a training step, which the loop and Lightning share.

Of 100 selected bytes 80 are masked, 10 replaced, and 10 left as they are. Source of the three shares: Devlin et al.,
BERT (2018), section 3.1.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from course_lib.errors import TrainingError
from course_lib.models import MaskedLanguageModel
from course_lib.models.bert import padding_mask
from course_lib.training.config import TrainingConfig, seed_for
from course_lib.training.corpus import MASK, NUM_BYTES, PADDING, Corpus, encode

IGNORED = -100  # the label that cross_entropy ignores
MASKED_SHARE, REPLACED_SHARE = 0.8, 0.1  # of the selected bytes; the others stay as they are


@dataclass(frozen=True)
class MaskedBatch:
    """Hold the inputs and the labels of a batch, each of shape (batch, sequence)."""

    tokens: torch.Tensor
    labels: torch.Tensor  # the original byte at selected positions, elsewhere -100
    kept: torch.Tensor  # True where there is text, False at padding

    def to(self, device: torch.device | str) -> "MaskedBatch":
        """Return the batch on a device."""
        return MaskedBatch(self.tokens.to(device), self.labels.to(device), self.kept.to(device))


def mask_tokens(tokens: torch.Tensor, generator: torch.Generator, *, selected_share: float = 0.15) -> MaskedBatch:
    """Select bytes at random and mask them; equal generators give equal results.

        >>> batch = mask_tokens(torch.tensor([[72, 105, PADDING]]), torch.Generator().manual_seed(0), selected_share=1)
        >>> batch.labels
        tensor([[  72,  105, -100]])

    `tokens` is int64 of any shape and is not changed. Only bytes are selected: padding and other special tokens are
    neither masked nor predicted, and never replace a byte at random. Raises `TrainingError` unless the share is above 0
    and at most 1, and the tokens are int64.
    """
    if not 0 < selected_share <= 1:
        raise TrainingError(f"mask_tokens got selected_share={selected_share}; it expects a share above 0, at most 1.")
    if tokens.dtype != torch.int64:
        raise TrainingError(f"mask_tokens got tokens of {tokens.dtype}; it expects torch.int64.")
    chance = torch.rand(tokens.shape, generator=generator)
    fate = torch.rand(tokens.shape, generator=generator)
    others = torch.randint(NUM_BYTES, tokens.shape, generator=generator)
    selected = (chance < selected_share) & (tokens < NUM_BYTES)
    hidden = torch.where(selected & (fate < MASKED_SHARE), MASK, tokens)
    replaced = selected & (fate >= MASKED_SHARE) & (fate < MASKED_SHARE + REPLACED_SHARE)
    return MaskedBatch(
        tokens=torch.where(replaced, others, hidden),
        labels=torch.where(selected, tokens, IGNORED),
        kept=tokens != PADDING,
    )


def masked_loss(logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean cross-entropy over selected bytes in nats, 0 where none was selected.

    `logits` has shape (batch, sequence, vocabulary), `labels` (batch, sequence).
    """
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    return total / (labels != IGNORED).sum().clamp(min=1)


def unigram_log_probabilities(tokens: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of each byte's share in `tokens`, of shape (256,), in float64.

        >>> round(unigram_log_probabilities(torch.tensor([97, 97, 98])).exp()[97].item() * (3 + 256), 9)
        3.0

    One is added to the count of every byte, so that no byte has probability 0 (Laplace's rule). Numbers that are no
    bytes do not count.
    """
    counts = torch.bincount(tokens[tokens < NUM_BYTES], minlength=NUM_BYTES).to(torch.float64) + 1
    return torch.log(counts / counts.sum())


def unigram_loss(log_probabilities: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the mean loss of the unigram model over the selected bytes, in nats per byte.

    `labels` holds bytes, and -100 where nothing is predicted.
    """
    return -log_probabilities[labels[labels != IGNORED]].mean().item()


@dataclass(frozen=True)
class MaskedText:
    """Hold a corpus as rows of tokens, and draw the batches of a run from it."""

    config: TrainingConfig
    train_rows: torch.Tensor  # (rows, sequence)
    held_out_rows: torch.Tensor
    fingerprint: str  # of the corpus

    @classmethod
    def of(cls, corpus: Corpus, config: TrainingConfig) -> "MaskedText":
        """Cut a corpus into rows.

        Raises `TrainingError` if there are fewer training rows than one batch needs, and for arguments of other types.
        """
        if not isinstance(corpus, Corpus):
            raise TrainingError(
                f"The training got a text of type {type(corpus).__name__}; it expects what `corpus` returns, such as "
                "corpus(folder)."
            )
        train, held_out = (
            encode(side, sequence_length=config.sequence_length_bytes) for side in (corpus.train, corpus.held_out)
        )
        if len(train) < config.batch_size_sequences:
            raise TrainingError(
                f"MaskedText got a corpus of {len(train)} rows to learn from; it expects at least one batch of "
                f"{config.batch_size_sequences}, so allow more bytes or make batches smaller."
            )
        return cls(config, train, held_out, corpus.fingerprint)

    def batch(self, step: int) -> MaskedBatch:
        """Return the batch of `step`, counted from 0. Each row occurs at most once per epoch, with a new mask."""
        size = self.config.batch_size_sequences
        epoch, place = divmod(step, len(self.train_rows) // size)
        order = torch.randperm(len(self.train_rows), generator=self._generator("epoch", epoch))
        return self._masked(self.train_rows[order[place * size : (place + 1) * size]], "masks", step)

    def held_out_batches(self) -> list[MaskedBatch]:
        """Return the batches of held-out rows for evaluation, equal at each call."""
        order = torch.randperm(len(self.held_out_rows), generator=self._generator("held out"))
        rows = self.held_out_rows[order[: self.config.evaluation_size_sequences]]
        parts = rows.split(self.config.batch_size_sequences)
        return [self._masked(part, "held-out masks", number) for number, part in enumerate(parts)]

    def unigram_baseline(self) -> float:
        """Return the loss, in nats per byte, of a unigram model of the training text.

        It is evaluated on the same masked bytes as a model. Raises `TrainingError` if none is masked.
        """
        labels = torch.cat([batch.labels.flatten() for batch in self.held_out_batches()])
        if not (labels != IGNORED).any():
            raise TrainingError(
                "MaskedText hides no byte of the held-out text; it expects a larger selected_share, or more sequences."
            )
        return unigram_loss(unigram_log_probabilities(self.train_rows), labels)

    def _masked(self, rows: torch.Tensor, purpose: str, number: int) -> MaskedBatch:
        return mask_tokens(rows, self._generator(purpose, number), selected_share=self.config.selected_share)

    def _generator(self, purpose: str, number: int = 0) -> torch.Generator:
        return torch.Generator().manual_seed(seed_for(self.config.seed, purpose, number))


BETAS = (0.9, 0.98)  # below the usual 0.999 for squares, since runs here take hundreds of steps, not millions


def make_model(config: TrainingConfig) -> MaskedLanguageModel:
    """Return the model with weights drawn by the seed; random states are left as they were."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_for(config.seed, "weights"))
        return MaskedLanguageModel(config.model)


def make_optimizer(
    model: nn.Module, config: TrainingConfig
) -> tuple[torch.optim.AdamW, torch.optim.lr_scheduler.LambdaLR]:
    """Return AdamW with weight decay on matrices only, and the schedule of its learning rate."""
    parameters = [each for each in model.parameters() if each.requires_grad]
    groups = [
        {"params": [each for each in parameters if each.dim() > 1], "weight_decay": config.weight_decay},
        {"params": [each for each in parameters if each.dim() <= 1], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, betas=BETAS)
    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, config.learning_rate_share)


def model_inputs(batch: MaskedBatch) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the inputs of the model: tokens (batch, sequence) and the mask that excludes padding."""
    return batch.tokens, padding_mask(batch.kept)


def training_loss(model: nn.Module, batch: MaskedBatch, config: TrainingConfig, step: int) -> torch.Tensor:
    """Return the loss of one batch in nats per byte, with dropout drawn by the seed and the step.

    The function sets the global random state; `train` restores it at the end.
    """
    torch.manual_seed(seed_for(config.seed, "dropout", step))
    return masked_loss(model(*model_inputs(batch)), batch.labels)


def evaluate(model: nn.Module, batches: Iterable[MaskedBatch]) -> float:
    """Return the model's mean loss over all hidden bytes of these batches, in nats per byte.

    Dropout and gradients are disabled; the model's mode is restored.
    """
    training, total, count = model.training, 0.0, 0
    model.eval()
    try:
        with torch.no_grad():
            for batch in batches:
                hidden = int((batch.labels != IGNORED).sum())
                total += masked_loss(model(*model_inputs(batch)), batch.labels).item() * hidden
                count += hidden
    finally:
        model.train(training)
    return total / max(count, 1)
