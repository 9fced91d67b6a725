"""The simplest guess at a hidden byte: how often each byte occurs, whatever stands around it."""

import torch

from course_lib.training.masking import IGNORED
from course_lib.training.tokens import NUM_BYTES


def unigram_log_probabilities(tokens: torch.Tensor) -> torch.Tensor:
    """Return the logarithm of each byte's share in `tokens`, of shape (256,), in float64.

        >>> round(unigram_log_probabilities(torch.tensor([97, 97, 98])).exp()[97].item() * (3 + 256), 9)
        3.0

    Every byte is counted once more than it occurs, so that none is impossible (Laplace's rule). Numbers that are no
    bytes do not count.
    """
    counts = torch.bincount(tokens[tokens < NUM_BYTES], minlength=NUM_BYTES).to(torch.float64) + 1
    return torch.log(counts / counts.sum())


def unigram_loss(log_probabilities: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the mean loss of that guess over the selected bytes, in nats per byte.

    `labels` holds bytes, and -100 where nothing is asked.
    """
    return -log_probabilities[labels[labels != IGNORED]].mean().item()
