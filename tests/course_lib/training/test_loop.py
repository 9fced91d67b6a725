"""The loop learns, reports, records, and goes on after a kill as if nothing had happened."""

import dataclasses
import importlib
import io
import itertools
import math
import multiprocessing
import os
import signal
import sys
from pathlib import Path

import pytest
import torch
from rich.console import Console

from course_lib.errors import TrainingError
from course_lib.models import MaskedLanguageModel
from course_lib.training import MaskedText, TrainingConfig, read_checkpoint, train
from course_lib.training import loop as loop_module
from course_lib.training.__main__ import main
from course_lib.training.loop import CHECKPOINT_NAME
from course_lib.training.masked_text import evaluate, make_model, make_optimizer
from tests.drawn import chance


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Compute in one thread: those of OpenMP do not survive a fork, and the forked process would wait for them."""
    usual = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(usual)


def run_and_kill(config, text, folder, *, place, time):
    """Train in a process that kills itself (-9) the given time that it comes to the place, a step or an fsync."""
    process = multiprocessing.get_context("fork").Process(target=_dying_run, args=(config, text, folder, place, time))
    process.start()
    process.join(120)
    assert process.exitcode == -signal.SIGKILL


def _dying_run(config, text, folder, place, time):
    module, name = {"step": (loop_module, "training_loss"), "fsync": (os, "fsync")}[place]
    function, calls = getattr(module, name), itertools.count(1)

    def dying(*arguments, **options):
        if next(calls) == time:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    setattr(module, name, dying)
    train(config, text=text, folder=folder, tensorboard=False)


def without_seconds(run):
    return [dataclasses.replace(each, seconds=0.0) for each in run.evaluations]


def assert_equal_runs(run, other):
    assert run.losses_nats == other.losses_nats
    assert without_seconds(run) == without_seconds(other)
    for name, tensor in other.model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], tensor), name


def test_a_run_killed_at_a_random_step_ends_like_one_that_was_not(config, text, tmp_path):
    step = chance("step of a kill").randint(config.checkpoint_every_steps + 1, config.steps)
    run_and_kill(config, text, tmp_path, place="step", time=step)
    run = train(config, text=text, folder=str(tmp_path), tensorboard=False)

    assert run.resumed_from_step == (step - 1) // config.checkpoint_every_steps * config.checkpoint_every_steps, step
    assert_equal_runs(run, train(config, text=text))


def test_a_run_killed_while_it_saves_keeps_the_checkpoint_before(config, text, tmp_path):
    run_and_kill(config, text, tmp_path, place="fsync", time=3)  # twice a checkpoint: the file, the folder

    assert (tmp_path / f"{CHECKPOINT_NAME}.partial").exists()
    assert len(read_checkpoint(tmp_path)["losses"]) == config.checkpoint_every_steps
    run = train(config, text=text, folder=tmp_path, tensorboard=False)
    assert_equal_runs(run, train(config, text=text))
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT_NAME]


def test_a_finished_run_is_not_run_again(config, text, tmp_path):
    first = train(config, text=text, folder=tmp_path, tensorboard=False)
    second = train(config, text=text, folder=tmp_path, tensorboard=False)

    assert second.resumed_from_step == config.steps
    assert_equal_runs(second, first)
    assert second.evaluations == first.evaluations


def test_a_checkpoint_of_other_settings_or_another_text_is_refused(config, text, tmp_path):
    train(config, text=text, folder=tmp_path, tensorboard=False)
    other_text = dataclasses.replace(text, train=text.held_out, held_out=text.train)

    with pytest.raises(TrainingError, match="a run with other settings or another text"):
        train(dataclasses.replace(config, seed=1), text=text, folder=tmp_path, tensorboard=False)
    with pytest.raises(TrainingError, match="a run with other settings or another text"):
        train(config, text=other_text, folder=tmp_path, tensorboard=False)


@pytest.mark.parametrize("kept_bytes", [0, 100, 5000])
def test_half_a_checkpoint_is_refused_in_one_sentence(config, text, tmp_path, kept_bytes):
    train(config, text=text, folder=tmp_path, tensorboard=False)
    path = tmp_path / CHECKPOINT_NAME
    path.write_bytes(path.read_bytes()[:kept_bytes])

    with pytest.raises(TrainingError, match="is no checkpoint that can be read; remove it to begin anew"):
        train(config, text=text, folder=tmp_path, tensorboard=False)


def test_a_checkpoint_runs_no_code(tmp_path):
    import pickle

    class Runs:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    (tmp_path / CHECKPOINT_NAME).write_bytes(pickle.dumps(Runs()))

    with pytest.raises(TrainingError, match="no checkpoint that can be read"):
        read_checkpoint(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_training_leaves_random_states_and_gives_equal_losses_for_equal_seeds(config, text):
    state = torch.get_rng_state()
    first, second = train(config, text=text), train(config, text=text)

    assert torch.equal(torch.get_rng_state(), state)
    assert first.losses_nats == second.losses_nats
    assert first.losses_nats != train(dataclasses.replace(config, seed=1), text=text).losses_nats


def test_steps_clip_the_gradient_and_follow_the_schedule(config, text):
    seen = []

    class Listener(loop_module.Recorder):
        def scalars(self, values, step):
            seen.append(dict(values))

    loop = loop_module._Loop(dataclasses.replace(config, clip_norm=0.01), MaskedText.of(text, config), "cpu", None)
    for step in range(4):
        loop.step(step, Listener())
        length = torch.stack([each.grad.norm() for each in loop.model.parameters() if each.grad is not None]).norm()
        assert length <= 0.01 * 1.001
    rates = [each["learning_rate"] for each in seen if "learning_rate" in each]
    assert rates == pytest.approx([config.learning_rate * config.learning_rate_share(step) for step in range(4)])


def test_only_matrices_decay(config):
    optimizer, _ = make_optimizer(make_model(config), config)
    matrices, others = optimizer.param_groups

    assert {each.dim() for each in matrices["params"]} == {2}
    assert {each.dim() for each in others["params"]} == {1}
    assert (matrices["weight_decay"], others["weight_decay"]) == (config.weight_decay, 0)


def test_evaluation_has_no_dropout_and_leaves_the_mode(config, text):
    model, batches = make_model(config).train(), MaskedText.of(text, config).held_out_batches()

    assert evaluate(model, batches) == evaluate(model, batches)
    assert model.training


def test_every_row_comes_once_an_epoch_and_is_hidden_differently_in_the_next(config, text):
    data = MaskedText.of(text, config)
    steps = len(data.train_rows) // config.batch_size_sequences
    epochs = [[data.batch(step + epoch * steps) for step in range(steps)] for epoch in range(2)]
    whole = [[torch.where(b.labels >= 0, b.labels, b.tokens) for b in batches] for batches in epochs]
    rows = [sorted(map(tuple, torch.cat(batches).tolist())) for batches in whole]

    assert len(rows[0]) == steps * config.batch_size_sequences
    assert all(rows[0].count(row) <= data.train_rows.tolist().count(list(row)) for row in rows[0])
    assert not torch.equal(whole[0][0], whole[1][0])


def test_settings_and_texts_of_other_types_are_refused(config, text):
    with pytest.raises(TrainingError, match="train got a config of type dict; it expects a TrainingConfig"):
        train({"steps": 3}, text=text)
    with pytest.raises(TrainingError, match="got a text of type str; it expects what `corpus` returns"):
        train(config, text="some text")


def test_a_text_too_small_for_a_batch_is_refused(config, text):
    with pytest.raises(TrainingError, match="at least one batch of 10000"):
        MaskedText.of(text, dataclasses.replace(config, batch_size_sequences=10_000))


def test_a_loss_that_is_no_number_stops_the_run_in_one_sentence(config, text, monkeypatch):
    class Broken(MaskedLanguageModel):
        def forward(self, *inputs):
            return super().forward(*inputs) * math.nan

    monkeypatch.setattr(loop_module, "make_model", lambda config: Broken(config.model))
    with pytest.raises(TrainingError, match="a loss of nan and a gradient of length nan in step 1; it expects finite"):
        train(config, text=text)


def test_the_bar_is_shown_on_a_terminal_and_nowhere_else(config, text):
    terminal, file = (Console(file=io.StringIO(), force_terminal=is_one) for is_one in (True, False))
    train(config, text=text, console=terminal)
    train(config, text=text, console=file)

    assert "8/8" in terminal.file.getvalue()
    assert "nats per byte" in terminal.file.getvalue()
    assert file.file.getvalue() == ""


def test_tensorboard_gets_scalars_graph_and_histograms_and_no_step_twice(config, text, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train(config, text=text, folder=tmp_path)
    events = EventAccumulator(str(tmp_path)).Reload()

    assert set(events.Tags()["scalars"]) == {
        "loss/train",
        "loss/held_out",
        "loss/unigram_baseline",
        "learning_rate",
        "gradient_length",
    }
    assert [each.step for each in events.Scalars("loss/train")] == list(range(1, config.steps + 1))
    assert [each.step for each in events.Scalars("loss/held_out")] == [0, 4, 8]
    assert "weights/head.dense.weight" in events.Tags()["histograms"]
    assert "gradients/head.dense.weight" in events.Tags()["histograms"]
    assert b"SelfAttention" in events.Graph().SerializeToString()


def test_a_run_that_goes_on_shows_no_step_twice(config, text, tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    step = loop_module._Loop.step

    def stopping(self, number, recorder):
        if number == 5:
            raise KeyboardInterrupt
        step(self, number, recorder)

    monkeypatch.setattr(loop_module._Loop, "step", stopping)
    with pytest.raises(KeyboardInterrupt):
        train(config, text=text, folder=tmp_path)
    monkeypatch.undo()
    train(config, text=text, folder=tmp_path)

    events = EventAccumulator(str(tmp_path)).Reload()
    assert [each.step for each in events.Scalars("loss/train")] == list(range(1, config.steps + 1))


def test_training_without_a_folder_loads_no_tensorboard(config, text):
    def train_anew(answer):  # in a fork, which has imported torch; what the question is about it forgets
        heavy = ("tensorboard", "lightning", "pytorch_lightning")
        of_the_inputs = {type(config).__module__, type(text).__module__}
        for name in set(sys.modules) - of_the_inputs:
            if name.startswith(("course_lib.training", "torch.utils.tensorboard", *heavy)):
                del sys.modules[name]
        importlib.import_module("course_lib.training").train(config, text=text)
        answer.send([name for name in sys.modules if name.startswith(heavy)])

    found, answer = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.get_context("fork").Process(target=train_anew, args=(answer,))
    process.start()
    answer.close()
    assert found.recv() == []
    process.join()


def test_the_command_prints_a_table_and_says_by_its_exit_status_who_won(capsys, tmp_path):
    assert main(["--steps", "2", "--folder", str(tmp_path)]) in (0, 1)
    head, *rows = capsys.readouterr().out.splitlines()

    assert head.split() == ["steps", "held-out", "nats/byte", "baseline", "seconds"]
    assert [row.split()[0] for row in rows] == ["0", "2"]
    assert main(["--steps", "0"]) == 2
    assert "steps=0; it expects 1 or more" in capsys.readouterr().err


@pytest.mark.slow
def test_a_smaller_model_beats_the_unigram_baseline_on_modules_it_never_saw():
    run = train(TrainingConfig(steps=200, evaluate_every_steps=200, corpus_max_bytes=200_000))
    first, last = run.evaluations[0], run.evaluations[-1]

    assert not first.beats_baseline
    assert last.held_out_nats < last.baseline_nats - 0.1
