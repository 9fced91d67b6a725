"""A small text and settings that train in a second."""

import pytest

from course_lib.models import TransformerConfig
from course_lib.training import TrainingConfig
from course_lib.training.corpus import Corpus, Document

WORDS = ["return", "the", "value", "of", "a", "key", "in", "this", "table", "or", "raise", "an", "error", "if", "none"]


@pytest.fixture
def text():
    train = tuple(" ".join(WORDS[i % 7 :] + WORDS[: i % 5]) for i in range(40))
    held_out = tuple(" ".join(WORDS[i % 3 :] + WORDS[i % 4 :]) for i in range(12))
    return Corpus((Document("a", train),), (Document("b", held_out),))


@pytest.fixture
def config():
    model = TransformerConfig(16, 2, 32, 1, vocab_size=259, max_positions=16, dropout=0.1)
    return TrainingConfig(
        model=model,
        steps=8,
        warm_up_steps=2,
        sequence_length_bytes=16,
        batch_size_sequences=4,
        evaluation_size_sequences=8,
        evaluate_every_steps=4,
        histograms_every_steps=4,
        checkpoint_every_steps=3,
    )
