"""Settings that cannot work are refused in one sentence."""

import dataclasses
import math

import pytest

from course_lib.errors import TrainingError
from course_lib.models import TransformerConfig
from course_lib.training import TrainingConfig


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"steps": 0}, "steps=0; it expects 1 or more"),
        ({"batch_size_sequences": -1}, "batch_size_sequences=-1; it expects 1 or more"),
        ({"checkpoint_every_steps": 0}, "checkpoint_every_steps=0; it expects 1 or more"),
        ({"steps": 10, "warm_up_steps": 10}, "a warm-up that is shorter than the run"),
        ({"learning_rate": 0}, "learning_rate=0; it expects a number above 0"),
        ({"learning_rate": math.nan}, "learning_rate=nan; it expects a number above 0"),
        ({"clip_norm": -1.0}, r"clip_norm=-1\.0; it expects a number above 0"),
        ({"weight_decay": -1.0}, r"weight_decay=-1\.0; it expects 0 or more"),
        ({"selected_share": 1.5}, r"selected_share=1\.5; it expects a share above 0"),
        ({"model": TransformerConfig(vocab_size=256)}, "vocab_size=256; it expects 259 or more"),
        ({"sequence_length_bytes": 64}, "a model that takes so long a sequence"),
    ],
)
def test_settings_that_cannot_work_are_refused(options, sentence):
    with pytest.raises(TrainingError, match=sentence):
        TrainingConfig(**options)


def test_settings_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TrainingConfig().steps = 1


def test_the_learning_rate_warms_up_reaches_one_and_falls_to_nearly_nothing():
    config = TrainingConfig(steps=110, warm_up_steps=10)
    shares = [config.learning_rate_share(step) for step in range(110)]

    assert shares[:10] == sorted(shares[:10])
    assert max(shares) == 1.0
    assert shares[10:] == sorted(shares[10:], reverse=True)
    assert 0 < shares[-1] < 0.02
    assert config.learning_rate_share(110) == 0


def test_a_run_without_warm_up_begins_at_the_highest_rate():
    assert TrainingConfig(warm_up_steps=0).learning_rate_share(0) == 1.0
