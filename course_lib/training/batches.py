"""The rows of a corpus in batches: shuffled for training, always the same for evaluation."""

from dataclasses import dataclass

import torch

from course_lib.errors import TrainingError
from course_lib.training.config import TrainingConfig
from course_lib.training.corpus import Corpus
from course_lib.training.masking import IGNORED, MaskedBatch, mask_tokens
from course_lib.training.seeding import seed_for
from course_lib.training.tokens import encode
from course_lib.training.unigram import unigram_log_probabilities, unigram_loss


@dataclass(frozen=True)
class MaskedText:
    """A corpus as rows of tokens, with the batches that a run takes from it."""

    config: TrainingConfig
    train_rows: torch.Tensor  # (rows, sequence)
    held_out_rows: torch.Tensor
    fingerprint: str  # of the corpus

    @classmethod
    def of(cls, corpus: Corpus, config: TrainingConfig) -> "MaskedText":
        """Cut a corpus into rows.

        Raises `TrainingError` if there are fewer rows to learn from than one batch takes.
        """
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
        """Return the batch of step `step` (from 0): every row comes once an epoch, hidden differently each time."""
        size = self.config.batch_size_sequences
        epoch, place = divmod(step, len(self.train_rows) // size)
        order = torch.randperm(len(self.train_rows), generator=self._generator("epoch", epoch))
        return self._masked(self.train_rows[order[place * size : (place + 1) * size]], "masks", step)

    def held_out_batches(self) -> list[MaskedBatch]:
        """Return the batches to be examined on, equal at each call: a sample of rows that nobody learns from."""
        order = torch.randperm(len(self.held_out_rows), generator=self._generator("held out"))
        rows = self.held_out_rows[order[: self.config.evaluation_size_sequences]]
        parts = rows.split(self.config.batch_size_sequences)
        return [self._masked(part, "held-out masks", number) for number, part in enumerate(parts)]

    def unigram_baseline(self) -> float:
        """Return the loss, in nats per byte, of guessing by how often a byte occurs in the text to learn from.

        It is examined on the same hidden bytes as a model. Raises `TrainingError` if none is hidden.
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
