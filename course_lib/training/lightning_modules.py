"""Train with Lightning: a module and a data module, with the same losses as `train` at each step.

    task, data = lightning_modules(config, text)
    lightning.Trainer(max_steps=config.steps, logger=False).fit(task, data)

To compile, call `task.model.compile()`: torch.compile fails on a whole LightningModule, because it logs. The names in
a checkpoint stay those of the eager model, while `task.model = torch.compile(task.model)` puts `_orig_mod.` in them.

The trained task is exported as the model that it holds:

    task.to_torchscript("task.pt")
    task.to_onnx("task.onnx", dynamo=True)  # needs the extra export
"""

import importlib
from typing import Any

import torch
from torch.utils.data import DataLoader

from course_lib.errors import TrainingError
from course_lib.models.bert import padding_mask
from course_lib.training.config import TrainingConfig, require_config
from course_lib.training.corpus import Corpus
from course_lib.training.masked_text import (
    MaskedBatch,
    MaskedText,
    make_model,
    make_optimizer,
    masked_loss,
    model_inputs,
    training_loss,
)


def lightning_modules(config: TrainingConfig, text: Corpus) -> tuple[Any, Any]:
    """Return a LightningModule and a LightningDataModule that train on the batches of `train`, in the same order.

    The task logs `loss/train` and `loss/held_out`, in nats per byte, clips its gradients by the config, and has the
    model as `task.model`. Called on tokens and mask it returns the model's logits. Its `example_input_array` is one
    full sequence, which Lightning traces. Raises `TrainingError` if the package lightning is not installed, and for a
    config or a text of another type.
    """
    require_config("lightning_modules", config)
    data = MaskedText.of(text, config)
    try:
        lightning = importlib.import_module("lightning")  # here, since importing it takes seconds
    except ImportError as error:
        raise TrainingError(
            "lightning_modules needs the package lightning, which is not installed; install it, or use `train`."
        ) from error
    return _task_class(lightning)(config), _data_class(lightning)(data)


def _task_class(lightning: Any) -> Any:
    class MaskedLanguageTask(lightning.LightningModule):
        """Hold the model of a config, with its loss and its optimiser."""

        def __init__(self, config: TrainingConfig) -> None:
            super().__init__()
            self.config = config
            self.model = make_model(config)
            # What Lightning traces when it exports: tokens, and a mask in which every token is visible.
            tokens = torch.zeros(1, config.sequence_length_bytes, dtype=torch.long)
            self.example_input_array = (tokens, padding_mask(torch.ones_like(tokens, dtype=torch.bool)))

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
            return self.model(tokens, mask)

        def training_step(self, batch: MaskedBatch, batch_idx: int) -> torch.Tensor:
            loss = training_loss(self.model, batch, self.config, self.global_step)
            self.log("loss/train", loss)
            return loss

        def validation_step(self, batch: MaskedBatch, batch_idx: int) -> None:
            loss = masked_loss(self.model(*model_inputs(batch)), batch.labels)
            self.log("loss/held_out", loss, batch_size=int((batch.labels >= 0).sum()))  # weighted by hidden bytes

        def configure_gradient_clipping(self, optimizer: Any, *arguments: Any, **options: Any) -> None:
            # Lightning's own clipping sums the squares in another order, so its last bit differs from that of the loop.
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.clip_norm)

        def configure_optimizers(self) -> Any:
            optimizer, schedule = make_optimizer(self.model, self.config)
            return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}

    return MaskedLanguageTask


def _data_class(lightning: Any) -> Any:
    class MaskedTextModule(lightning.LightningDataModule):
        """Yield the batches of a config, in the order of `train`."""

        def __init__(self, text: MaskedText) -> None:
            super().__init__()
            self.text = text

        def train_dataloader(self) -> Any:
            return DataLoader(_TrainBatches(self.text), batch_size=None)

        def val_dataloader(self) -> Any:
            return DataLoader(self.text.held_out_batches(), batch_size=None)  # type: ignore[arg-type]  # a list will do

    return MaskedTextModule


class _TrainBatches(torch.utils.data.Dataset[MaskedBatch]):
    """Yield one batch for each step of the run; `MaskedText.batch` shuffles again in each epoch."""

    def __init__(self, text: MaskedText) -> None:
        self.text = text

    def __len__(self) -> int:
        return self.text.config.steps

    def __getitem__(self, step: int) -> MaskedBatch:
        return self.text.batch(step)
