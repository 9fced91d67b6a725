"""Lightning trains the same model on the same batches: equal losses, step by step."""

import sys

import pytest
import torch
from torch._dynamo.testing import CompileCounter

from course_lib.errors import TrainingError
from course_lib.models.bert import padding_mask
from course_lib.training import lightning_modules, train


@pytest.fixture
def task(config, text):
    task, _ = lightning_modules(config, text)
    return task.eval()


@pytest.fixture
def other_inputs(task):
    """Return tokens and mask of a larger batch than the example, with padding."""
    tokens = torch.randint(0, 250, (3, task.config.sequence_length_bytes), generator=torch.Generator().manual_seed(0))
    kept = torch.ones_like(tokens, dtype=torch.bool)
    kept[1, -4:] = False
    return tokens, padding_mask(kept)


def test_settings_and_texts_of_other_types_are_refused(config, text):
    with pytest.raises(TrainingError, match="got a config of type dict; it expects a TrainingConfig"):
        lightning_modules({"steps": 3}, text)
    with pytest.raises(TrainingError, match="got a text of type str; it expects what `corpus` returns"):
        lightning_modules(config, "some text")


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


def test_the_task_computes_what_its_model_computes(task, other_inputs):
    assert torch.equal(task(*other_inputs), task.model(*other_inputs))
    assert not torch.equal(task(*other_inputs), task(other_inputs[0]))


@pytest.mark.filterwarnings("ignore:.*TorchScript is deprecated", "ignore:.*torch.jit", "ignore:.*to_torchscript")
@pytest.mark.parametrize("method", ["script", "trace"])
def test_the_task_becomes_a_torchscript_file_for_any_batch(task, other_inputs, tmp_path, method):
    task.to_torchscript(tmp_path / "task.pt", method=method)

    loaded = torch.jit.load(tmp_path / "task.pt")

    torch.testing.assert_close(loaded(*other_inputs), task.model(*other_inputs))


def test_compiling_the_model_in_place_leaves_the_names_of_a_checkpoint(config, text):
    eager, in_place, wrapped = (lightning_modules(config, text)[0] for _ in range(3))
    graphs = CompileCounter()
    in_place.model.compile(backend=graphs)
    in_place(*in_place.example_input_array)
    assert graphs.frame_count == 1
    wrapped.model = torch.compile(wrapped.model, backend="eager")

    in_place.load_state_dict(eager.state_dict())
    eager.load_state_dict(in_place.state_dict())
    assert all(name.startswith("model._orig_mod.") for name in wrapped.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        eager.load_state_dict(wrapped.state_dict())


def test_without_lightning_one_sentence_says_what_to_do(config, text, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning", None)

    with pytest.raises(TrainingError, match="which is not installed; install it, or use `train`"):
        lightning_modules(config, text)


def test_the_task_is_exported_to_onnx_and_computes_the_same_in_onnx_runtime(task, tmp_path):
    import onnxruntime  # here, because it starts threads

    task.to_onnx(tmp_path / "task.onnx", dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "task.onnx")
    example = task.example_input_array
    given = {each.name: tensor.numpy() for each, tensor in zip(session.get_inputs(), example, strict=True)}
    (found,) = session.run(None, given)
    torch.testing.assert_close(torch.from_numpy(found), task(*example), atol=1e-4, rtol=0)
    assert list(given) == ["tokens", "mask"]
