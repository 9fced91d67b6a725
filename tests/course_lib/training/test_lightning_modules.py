"""Lightning trains the same model on the same batches: equal losses, step by step."""

import sys

import pytest
import torch

from course_lib.errors import TrainingError
from course_lib.training import lightning_modules, train


def test_lightning_gives_the_losses_and_weights_of_the_loop(config, text):
    import lightning  # here, because it takes seconds

    losses = []

    class LossKeeper(lightning.Callback):
        def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
            losses.append(outputs["loss"].item())

    task, data = lightning_modules(config, text)
    trainer = lightning.Trainer(
        max_steps=config.steps,
        accelerator="cpu",
        callbacks=[LossKeeper()],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
    )
    trainer.fit(task, data)
    run = train(config, text=text)

    assert losses == list(run.losses_nats)
    for name, tensor in run.model.state_dict().items():
        assert torch.equal(task.model.state_dict()[name], tensor), name
    assert trainer.callback_metrics["loss/held_out"].item() == pytest.approx(
        run.evaluations[-1].held_out_nats, rel=1e-5
    )


def test_without_lightning_one_sentence_says_what_to_do(config, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", None)

    with pytest.raises(TrainingError, match="which is not installed; install it, or use `train`"):
        lightning_modules(config, text)
