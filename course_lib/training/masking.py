"""Hide bytes for a model to guess, 80 of 100 behind a mask, 10 behind another byte, 10 in full view.

Source of the three shares: Devlin et al., BERT (2018), section 3.1.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from course_lib.errors import TrainingError
from course_lib.training.tokens import MASK, NUM_BYTES, PADDING

IGNORED = -100  # the label that cross_entropy passes over
MASKED_SHARE, REPLACED_SHARE = 0.8, 0.1  # of the selected bytes; the others stay as they are


@dataclass(frozen=True)
class MaskedBatch:
    """What a model sees and what it should say, each of shape (batch, sequence)."""

    tokens: torch.Tensor
    labels: torch.Tensor  # the hidden byte where one was selected, elsewhere -100
    kept: torch.Tensor  # True where there is text, False at padding

    def to(self, device: torch.device | str) -> "MaskedBatch":
        """Return the batch on a device."""
        return MaskedBatch(self.tokens.to(device), self.labels.to(device), self.kept.to(device))


def mask_tokens(tokens: torch.Tensor, generator: torch.Generator, *, selected_share: float = 0.15) -> MaskedBatch:
    """Select bytes by chance and hide them; equal generators hide equal bytes in equal ways.

        >>> batch = mask_tokens(torch.tensor([[72, 105, PADDING]]), torch.Generator().manual_seed(0), selected_share=1)
        >>> batch.labels
        tensor([[  72,  105, -100]])

    `tokens` is int64 of any shape and stays as it is. Only bytes are selected: padding and other special numbers are
    neither hidden nor asked for, and a byte is never replaced by one of them. Raises `TrainingError` for a share that
    is not above 0 and at most 1, and for tokens that are no int64.
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
