"""Hold the settings of a training run, and derive its seeds from them."""

import dataclasses
import hashlib
import math
from dataclasses import dataclass
from typing import Any

from course_lib.errors import TrainingError
from course_lib.models import TransformerConfig
from course_lib.training.corpus import VOCABULARY_SIZE

COUNTS = (
    "steps",
    "sequence_length_bytes",
    "batch_size_sequences",
    "evaluation_size_sequences",
    "evaluate_every_steps",
    "histograms_every_steps",
    "checkpoint_every_steps",
    "corpus_max_bytes",
)
TINY_MODEL = TransformerConfig(
    hidden_size=64, num_heads=4, intermediate_size=256, vocab_size=VOCABULARY_SIZE, max_positions=32, dropout=0.0
)


def require_config(name: str, config: object) -> None:
    """Raise `TrainingError`, which names the function that asks, unless `config` is a `TrainingConfig`."""
    if not isinstance(config, TrainingConfig):
        raise TrainingError(
            f"{name} got a config of type {type(config).__name__}; it expects a TrainingConfig, such as "
            "TrainingConfig(steps=500)."
        )


@dataclass(frozen=True)
class TrainingConfig:
    """Hold the settings of a run; equal settings give equal losses on one machine with the same number of threads.

    The defaults beat the unigram baseline on one CPU core in well under two minutes.
    """

    model: TransformerConfig = TINY_MODEL
    steps: int = 1500
    sequence_length_bytes: int = 32
    batch_size_sequences: int = 32
    selected_share: float = 0.15  # share of the bytes to predict
    learning_rate: float = 2e-3  # at its highest, after the warm-up
    warm_up_steps: int = 100
    weight_decay: float = 0.01  # of matrices; biases and norms have none
    clip_norm: float = 1.0  # gradients with a larger norm are scaled down to it
    evaluation_size_sequences: int = 256
    evaluate_every_steps: int = 250
    histograms_every_steps: int = 250  # of weights and gradients, where there is TensorBoard
    checkpoint_every_steps: int = 100
    corpus_max_bytes: int = 500_000
    seed: int = 0

    def __post_init__(self) -> None:
        """Raise `TrainingError` for impossible settings."""
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise TrainingError(f"TrainingConfig got {name}={getattr(self, name)}; it expects 1 or more.")
        if not 0 <= self.warm_up_steps < self.steps:
            raise TrainingError(
                f"TrainingConfig got warm_up_steps={self.warm_up_steps} and steps={self.steps}; it expects a warm-up "
                "that is shorter than the run."
            )
        self._check_numbers()
        self._check_model()

    def _check_numbers(self) -> None:
        for name in ("learning_rate", "clip_norm"):
            if not (math.isfinite(getattr(self, name)) and getattr(self, name) > 0):
                raise TrainingError(f"TrainingConfig got {name}={getattr(self, name)}; it expects a number above 0.")
        if not (math.isfinite(self.weight_decay) and self.weight_decay >= 0):
            raise TrainingError(f"TrainingConfig got weight_decay={self.weight_decay}; it expects 0 or more.")
        if not 0 < self.selected_share <= 1:
            raise TrainingError(
                f"TrainingConfig got selected_share={self.selected_share}; it expects a share above 0, at most 1."
            )

    def _check_model(self) -> None:
        if self.model.vocab_size < VOCABULARY_SIZE:
            raise TrainingError(
                f"TrainingConfig got a model of vocab_size={self.model.vocab_size}; it expects {VOCABULARY_SIZE} or "
                "more: 256 bytes, padding, mask and end."
            )
        if self.model.max_positions < self.sequence_length_bytes:
            raise TrainingError(
                f"TrainingConfig got sequence_length_bytes={self.sequence_length_bytes} and a model of "
                f"max_positions={self.model.max_positions}; it expects a model that takes so long a sequence."
            )

    def to_json(self) -> dict[str, Any]:
        """Return all settings as plain data."""
        return dataclasses.asdict(self)

    def learning_rate_share(self, step: int) -> float:
        """Return the learning rate of step `step` (from 0), as a share of the highest one.

            >>> config = TrainingConfig(steps=110, warm_up_steps=10)
            >>> [config.learning_rate_share(step) for step in (0, 9, 10, 60, 109)]
            [0.1, 1.0, 1.0, 0.5, 0.01]

        It rises linearly during the warm-up and then falls linearly. At the beginning, AdamW estimates its moments from
        few gradients, so large steps would be unreliable.
        """
        if step < self.warm_up_steps:
            return (step + 1) / self.warm_up_steps
        return max(0.0, (self.steps - step) / (self.steps - self.warm_up_steps))


def seed_for(seed: int, purpose: str, number: int = 0) -> int:
    """Return a seed in [0, 2**63) that depends only on the three arguments.

        >>> seed_for(0, "masks", 1) == seed_for(0, "masks", 1) != seed_for(0, "masks", 2)
        True

    A run that resumes at step 300 therefore draws the same numbers, without the saved state of a generator.
    """
    return int.from_bytes(hashlib.sha256(f"{seed}/{purpose}/{number}".encode()).digest()[:8], "big") >> 1
