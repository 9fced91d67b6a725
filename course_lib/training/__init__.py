"""Train a masked language model on a text that every machine with Python has."""

from course_lib.training.config import TrainingConfig
from course_lib.training.corpus import corpus, decode, encode
from course_lib.training.lightning_modules import lightning_modules
from course_lib.training.loop import read_checkpoint, train
from course_lib.training.masked_text import MaskedText
from course_lib.training.tensorboard import dashboard

__all__ = [
    "MaskedText",
    "TrainingConfig",
    "corpus",
    "dashboard",
    "decode",
    "encode",
    "lightning_modules",
    "read_checkpoint",
    "train",
]
