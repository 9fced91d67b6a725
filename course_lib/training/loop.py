"""Run a training with evaluation, checkpoints and progress; a killed run can be resumed."""

import dataclasses
import json
import os
import pickle
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from course_lib.errors import TrainingError
from course_lib.training.config import TrainingConfig, require_config
from course_lib.training.corpus import Corpus, corpus
from course_lib.training.masked_text import (
    MaskedText,
    evaluate,
    make_model,
    make_optimizer,
    model_inputs,
    training_loss,
)
from course_lib.training.tensorboard import Recorder, open_recorder

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class Evaluation:
    """Hold the loss on held-out text after some steps."""

    steps: int
    held_out_nats: float  # per byte
    baseline_nats: float  # loss of the unigram baseline on the same bytes
    seconds: float  # of training until then, evaluation included

    @property
    def beats_baseline(self) -> bool:
        """Tell whether the model predicts better than the frequencies of bytes."""
        return self.held_out_nats < self.baseline_nats


@dataclass(frozen=True)
class TrainingRun:
    """Hold a finished run: the trained model, the loss of every step, and the evaluations."""

    config: TrainingConfig
    model: nn.Module
    losses_nats: tuple[float, ...]  # per byte, one for each step, including steps before a resume
    evaluations: tuple[Evaluation, ...]
    resumed_from_step: int  # 0 if the run was not interrupted

    def __str__(self) -> str:
        lines = [f"{'steps':>6}  {'held-out nats/byte':>18}  {'baseline':>8}  {'seconds':>7}"]
        lines += [
            f"{each.steps:6}  {each.held_out_nats:18.3f}  {each.baseline_nats:8.3f}  {each.seconds:7.1f}"
            for each in self.evaluations
        ]
        return "\n".join(lines)


def train(
    config: TrainingConfig | None = None,
    *,
    text: Corpus | None = None,
    folder: Path | str | None = None,
    tensorboard: bool = True,
    device: torch.device | str = "cpu",
    console: "Console | None" = None,
) -> TrainingRun:
    """Train a masked language model on docstrings, and evaluate it on docstrings of held-out modules.

        >>> settings = TrainingConfig(steps=2, warm_up_steps=1, evaluate_every_steps=1, corpus_max_bytes=50_000)
        >>> run = train(settings)
        >>> [each.steps for each in run.evaluations], len(run.losses_nats)
        ([0, 1, 2], 2)

    With a `folder`, checkpoints and TensorBoard's files are written there; `tensorboard=False` disables the latter. If
    the folder holds a checkpoint, the run continues from it, with the same losses as an uninterrupted run. `text`
    defaults to `corpus()` of the configured size. Progress is shown only on a terminal and in a notebook. Random
    states are restored at the end. Not yet run on CUDA.

    Raises `TrainingError` for a checkpoint of another run, for a loss that is not finite, and for wrong arguments.
    """
    config = TrainingConfig() if config is None else config
    require_config("train", config)
    folder = None if folder is None else Path(folder)
    data = MaskedText.of(corpus(max_bytes=config.corpus_max_bytes) if text is None else text, config)
    with torch.random.fork_rng():
        loop = _Loop(config, data, torch.device(device), folder)
        loop.resume()
        first_step = len(loop.losses)
        with (
            open_recorder(folder if tensorboard else None, first_step=first_step) as recorder,
            progress_bar("training", config.steps, console=console) as advance,
        ):
            loop.begin(recorder)
            for step in range(first_step, config.steps):
                loop.step(step, recorder)
                advance(step + 1, f"loss {loop.losses[-1]:.3f} nats per byte")
    return TrainingRun(config, loop.model, tuple(loop.losses), tuple(loop.evaluations), first_step)


class _Loop:
    """Hold the state of a run and execute its steps."""

    def __init__(self, config: TrainingConfig, data: MaskedText, device: torch.device, folder: Path | None) -> None:
        self.config, self.data, self.device, self.folder = config, data, device, folder
        self.model = make_model(config).to(device).train()
        self.optimizer, self.schedule = make_optimizer(self.model, config)
        self.held_out = [batch.to(device) for batch in data.held_out_batches()]
        self.baseline_nats = data.unigram_baseline()
        self.losses: list[float] = []
        self.evaluations: list[Evaluation] = []
        self.seconds_before = 0.0
        self.started_s = time.perf_counter()

    def begin(self, recorder: Recorder) -> None:
        """Record the graph, and evaluate the untrained model; a resumed run has both already."""
        if not self.losses:
            recorder.graph(self.model, model_inputs(self.held_out[0]))
            self._evaluate(0, recorder)

    def step(self, step: int, recorder: Recorder) -> None:
        """Train on one batch; evaluate, record and save at the configured steps."""
        config, done = self.config, step + 1
        loss = training_loss(self.model, self.data.batch(step).to(self.device), config, step)
        self.optimizer.zero_grad()
        loss.backward()
        length = torch.nn.utils.clip_grad_norm_(self.model.parameters(), config.clip_norm)
        if not torch.isfinite(loss) or not torch.isfinite(length):
            raise TrainingError(
                f"train got a loss of {loss.item()} and a gradient of length {length.item()} in step {done}; it "
                "expects finite numbers, so lower the learning rate or warm up for longer."
            )
        learning_rate = float(self.schedule.get_last_lr()[0])
        self.optimizer.step()
        self.schedule.step()
        self.losses.append(loss.item())
        recorder.scalars(
            {"loss/train": loss.item(), "learning_rate": learning_rate, "gradient_length": length.item()}, done
        )
        if done % config.histograms_every_steps == 0:
            recorder.histograms(self.model, done)
        if done % config.evaluate_every_steps == 0 or done == config.steps:
            self._evaluate(done, recorder)
        if self.folder and (done % config.checkpoint_every_steps == 0 or done == config.steps):
            write_checkpoint(self.folder, self._state())

    def resume(self) -> None:
        """Load the checkpoint of the folder, if there is one."""
        state = read_checkpoint(self.folder) if self.folder else None
        if state is None:
            return
        if state.get("identity") != self._identity():
            raise TrainingError(
                f"train got the folder {self.folder}, whose checkpoint is of a run with other settings or another "
                "text; it expects an empty folder, or the settings and the text of that run."
            )
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])
        self.losses = state["losses"]
        self.evaluations = [Evaluation(**each) for each in state["evaluations"]]
        self.seconds_before = state["seconds"]

    def _evaluate(self, done: int, recorder: Recorder) -> None:
        found = Evaluation(done, evaluate(self.model, self.held_out), self.baseline_nats, self._seconds())
        self.evaluations.append(found)
        recorder.scalars({"loss/held_out": found.held_out_nats, "loss/unigram_baseline": found.baseline_nats}, done)

    def _seconds(self) -> float:
        return self.seconds_before + time.perf_counter() - self.started_s

    def _identity(self) -> str:
        """Return the values that a checkpoint must have to be resumed by this run."""
        return json.dumps({"config": self.config.to_json(), "text": self.data.fingerprint}, sort_keys=True)

    def _state(self) -> dict[str, Any]:
        return {
            "identity": self._identity(),
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "losses": self.losses,
            "evaluations": [dataclasses.asdict(each) for each in self.evaluations],
            "seconds": self._seconds(),
        }


Advance = Callable[[int, str], None]


@contextmanager
def progress_bar(title: str, total: int, *, console: "Console | None" = None) -> Iterator[Advance]:
    """Yield a function that sets how many of `total` steps are done, and the text beside the bar.

    Nothing is written if the console is neither a terminal nor a notebook, since a log file would fill with bars.
    """
    # Imported here, since importing rich draws a random number, and importing the library must not.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = console or Console(stderr=True)
    columns = (
        TextColumn(title),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, disable=not (console.is_terminal or console.is_jupyter)) as bar:
        task = bar.add_task(title, total=total, note="")
        yield lambda done, note: bar.update(task, completed=done, note=note)
        bar.refresh()  # in a notebook rich omits the last steps


CHECKPOINT_NAME = "checkpoint.pt"


def write_checkpoint(folder: Path, state: dict[str, Any]) -> Path:
    """Write a state to the folder's checkpoint in one step, and return its path.

    The state is written to a second file, which is renamed to the checkpoint after it is completely on disk. If the
    process is killed, the folder has the old checkpoint or the new one, never a partial one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, partial = folder / CHECKPOINT_NAME, folder / f"{CHECKPOINT_NAME}.partial"
    with partial.open("wb") as file:
        torch.save(state, file)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
    _sync_folder(folder)
    return path


def read_checkpoint(folder: Path) -> dict[str, Any] | None:
    """Return the state in the folder's checkpoint, on the CPU; None if the folder has none.

    Only tensors and plain data are read, never code. Raises `TrainingError` if the file is not a complete checkpoint.
    """
    path = folder / CHECKPOINT_NAME
    if not path.exists():
        return None
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, ValueError, pickle.UnpicklingError) as error:
        raise TrainingError(
            f"{path} is no checkpoint that can be read; remove it to begin anew, or name another folder."
        ) from error
    if not isinstance(state, dict):
        raise TrainingError(f"{path} holds a {type(state).__name__}; it expects a checkpoint that `train` wrote.")
    return state


def _sync_folder(folder: Path) -> None:
    """Flush the folder to disk too; without it the new name may be lost when the power fails."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
