"""Define the parts of a training step as functions, which the loop and Lightning share."""

from collections.abc import Iterable

import torch
from torch import nn

from course_lib.models import MaskedLanguageModel
from course_lib.models.bert import padding_mask
from course_lib.training.config import TrainingConfig, seed_for
from course_lib.training.masked_text import IGNORED, MaskedBatch, masked_loss

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

    The global random state is set for it; `train` gives it back at the end.
    """
    torch.manual_seed(seed_for(config.seed, "dropout", step))
    return masked_loss(model(*model_inputs(batch)), batch.labels)


def evaluate(model: nn.Module, batches: Iterable[MaskedBatch]) -> float:
    """Return the model's mean loss over all hidden bytes of these batches, in nats per byte.

    Without dropout and gradients; the model's mode is left as it was.
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
