"""Train a masked language model on a text that every machine with Python has."""

from course_lib.training.batches import MaskedText
from course_lib.training.checkpoints import read_checkpoint, write_checkpoint
from course_lib.training.config import TrainingConfig
from course_lib.training.corpus import Corpus, Document, corpus
from course_lib.training.dashboard import Dashboard, dashboard
from course_lib.training.lightning_modules import lightning_modules
from course_lib.training.loop import train
from course_lib.training.masking import MaskedBatch, mask_tokens, masked_loss
from course_lib.training.run import Evaluation, TrainingRun
from course_lib.training.tokens import decode, encode
from course_lib.training.unigram import unigram_log_probabilities

__all__ = [
    "Corpus",
    "Dashboard",
    "Document",
    "Evaluation",
    "MaskedBatch",
    "MaskedText",
    "TrainingConfig",
    "TrainingRun",
    "corpus",
    "dashboard",
    "decode",
    "encode",
    "lightning_modules",
    "mask_tokens",
    "masked_loss",
    "read_checkpoint",
    "train",
    "unigram_log_probabilities",
    "write_checkpoint",
]
