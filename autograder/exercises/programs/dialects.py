"""Random text in an artificial language, for exercises that train a masked language model."""

from dataclasses import dataclass, replace

import torch

from autograder.host.draw import Draw

LETTERS, DIALECTS = 24, 4
MASK = LETTERS
STEPS, BATCH, LENGTH, HELD_OUT = 64, 32, 16, 256
IGNORED = -100


@dataclass(frozen=True)
class Text:
    """Random text in an artificial language, to train on and to test with: each row uses one of four alphabets.

    The alphabets are drawn at random for each grading, so an answer cannot contain what it should learn.

    The frequency of letters does not help to predict a hidden letter, but the letters around it almost determine it.
    """

    hidden: torch.Tensor  # (steps, batch, length)
    labels: torch.Tensor
    held_out_hidden: torch.Tensor  # (rows, length)
    held_out_labels: torch.Tensor

    @classmethod
    def drawn(cls, draw: Draw) -> "Text":
        """Return random rows for training, and held-out rows of the same language."""
        rows = STEPS * BATCH + HELD_OUT
        alphabets = torch.tensor(draw.sample(range(LETTERS), LETTERS)).view(DIALECTS, -1)
        uniform = draw.normal(rows, LENGTH + 1, dtype=torch.float64).mul(1e6).long().abs()
        dialects, places = uniform[:, 0] % DIALECTS, uniform[:, 1:] % alphabets.shape[1]
        tokens = alphabets[dialects].gather(1, places)
        labels = torch.where(draw.keep(rows, LENGTH, probability=0.15), tokens, IGNORED)
        hidden = torch.where(labels == IGNORED, tokens, MASK)
        shape = (STEPS, BATCH, LENGTH)
        return cls(
            hidden[:-HELD_OUT].reshape(shape),
            labels[:-HELD_OUT].reshape(shape),
            hidden[-HELD_OUT:],
            labels[-HELD_OUT:],
        )

    def changed(self, *steps: int) -> "Text":
        """Return the same text with other labels in the batches of `steps`: letters of another alphabet."""
        labels = self.labels.clone()
        for step in steps:
            labels[step] = torch.where(labels[step] == IGNORED, IGNORED, (labels[step] + LETTERS // 2) % LETTERS)
        return replace(self, labels=labels)

    def until(self, step: int) -> "Text":
        """Return the text of the batches before `step`."""
        return replace(self, hidden=self.hidden[:step], labels=self.labels[:step])

    def unigram_nats(self) -> float:
        """Return the held-out loss of a baseline that predicts the letter frequencies of the training labels."""
        asked = self.labels[self.labels != IGNORED]
        shares = torch.bincount(asked, minlength=LETTERS).double() / len(asked)
        return -float(shares.log()[self.held_out_labels[self.held_out_labels != IGNORED]].mean())
