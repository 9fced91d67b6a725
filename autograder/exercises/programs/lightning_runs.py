"""Runs of Lightning with parts of an answer; the text of this file is sent to the worker, which reports plain data.

The host calls only the functions that make batches and models. Lightning is imported inside functions, since importing
it takes seconds.
"""

import base64
import logging
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

IGNORED = -100
LETTERS = 20
RATE = 0.01
WIDTH = 5  # no size of a batch, since Dynamo takes equal sizes for one
Pairs = list[tuple[torch.Tensor, torch.Tensor]]
Plain = dict[str, Any]  # what a report holds, or options by name


def batches(seed: int, count: int) -> Pairs:
    """Return pairs of tokens and labels, each (3, 10); letters to guess are replaced by `LETTERS`."""
    generator, pairs = torch.Generator().manual_seed(seed), []
    for number in range(count):
        tokens = torch.randint(LETTERS, (3, 10), generator=generator)
        asked = torch.rand(tokens.shape, generator=generator) < (0.15 if number % 2 else 0.6)
        asked[0, 0] = True
        pairs.append((torch.where(asked, LETTERS, tokens), torch.where(asked, tokens, IGNORED)))
    return pairs


def sizes(dropout: float) -> Plain:
    """Return the sizes of a small model of these letters."""
    return {
        "hidden_size": 16,
        "num_heads": 2,
        "intermediate_size": 32,
        "num_layers": 1,
        "vocab_size": LETTERS + 1,
        "max_positions": 10,
        "dropout": dropout,
    }


def run_of(seed: int, steps: int, dropout: float) -> Plain:
    """Return what a port of the trainer is made from, but for its folder."""
    return {
        "train": batches(seed, steps),
        "held_out": batches(seed + 1, 3),
        "seed": seed,
        "sizes": sizes(dropout),
    }


@contextmanager
def _quiet() -> Any:
    """Silence Lightning's advice, which would be taken for output of the answer."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logger.setLevel(level)


def _trainer(**options: Any) -> Any:
    import lightning

    usual = {"accelerator": "cpu", "devices": 1, "max_epochs": 1, "log_every_n_steps": 1, "num_sanity_val_steps": 0}
    shown = dict.fromkeys(("enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
    return lightning.Trainer(**{**usual, **shown, **options})


def _read(logger: Any) -> dict[str, list[list[float]]]:
    """Return the scalars that a logger wrote: for each tag its steps and values."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    logger.finalize("success")
    found = EventAccumulator(logger.log_dir).Reload()
    return {tag: [[e.step, e.value] for e in found.Scalars(tag)] for tag in found.Tags()["scalars"]}


def _loader(items: Sequence[Any]) -> DataLoader[Any]:
    return DataLoader(items, batch_size=None)  # type: ignore[arg-type]  # a list will do


def scale_weights(module: nn.Module, factor: float) -> None:
    """Multiply all parameters by a number, in place."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(factor)


def _weights(module: nn.Module) -> Plain:
    return {name: value.tolist() for name, value in module.state_dict().items()}


def fit_port(port: Callable[..., Any], seed: int, steps: int, dropout: float, at: int, factor: float) -> Plain:
    """Train what `port` returns, and report its classes, the losses, the scalars in its folder and the weights.

    Before step `at` the weights are multiplied by `factor` and reported: the losses after it cannot be known before.
    """
    import lightning
    from lightning.pytorch.loggers import TensorBoardLogger

    losses: list[float] = []
    before: Plain = {}

    class Losses(lightning.Callback):
        def on_train_batch_start(self, trainer: Any, task: Any, batch: Any, batch_idx: int) -> None:
            if len(losses) == at:
                scale_weights(task, factor)
                before.update(_weights(task))

        def on_train_batch_end(self, trainer: Any, task: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            losses.append(float(outputs["loss"]))

    with _quiet(), tempfile.TemporaryDirectory() as folder:
        result = port(run_of(seed, steps, dropout) | {"folder": folder})
        parts = [*result, None, None][:3] if isinstance(result, tuple | list) else [result, None, None]
        task, data, logger = parts
        if not isinstance(task, lightning.LightningModule) or not isinstance(data, lightning.LightningDataModule):
            return {"classes": [type(part).__name__ for part in parts]}
        kept = isinstance(logger, TensorBoardLogger)
        clip = 1.0 if task.automatic_optimization else None  # a task with its own loop clips by itself
        _trainer(logger=logger if kept else False, callbacks=[Losses()], gradient_clip_val=clip).fit(task, data)
        scalars = _read(logger) if kept else {}
    return {"losses": losses, "scalars": scalars, "state": _weights(task), "before": before}


class Model(nn.Module):
    """A model as users write them: a class with a forward of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(WIDTH, 16), nn.Linear(16, WIDTH)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Map (batch, width) to (batch, width)."""
        return self.second(torch.tanh(self.first(hidden))).view(hidden.shape[0], WIDTH)


PARTS: Mapping[str, Callable[[], dict[str, nn.Module]]] = {
    "a model": lambda: {"model": Model()},
    "a Sequential": lambda: {"net": nn.Sequential(nn.Linear(WIDTH, 16), nn.GELU(), nn.Linear(16, WIDTH))},
    "an encoder and a Linear": lambda: {"encoder": Model(), "head": nn.Linear(WIDTH, WIDTH)},
}
"""The parts of tasks by what they hold; a task calls its parts one after the other."""


def parts_of(kind: str, seed: int) -> dict[str, nn.Module]:
    """Return the parts of a task with weights of this seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return PARTS[kind]()


def rows(seed: int, size: int) -> torch.Tensor:
    """Return an input of a task, (size, width)."""
    return torch.randn(size, WIDTH, generator=torch.Generator().manual_seed(seed))


def _task(kind: str, seed: int) -> Any:
    """Return a task of these parts."""
    import lightning

    class Task(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts_of(kind, seed).items():
                self.add_module(name, part)
            self.names = list(dict(self.named_children()))

        def forward(self, hidden: torch.Tensor) -> torch.Tensor:
            return self.through_parts(hidden)

        def through_parts(self, hidden: torch.Tensor) -> torch.Tensor:
            for name in self.names:
                hidden = getattr(self, name)(hidden)
            return hidden

        def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
            loss = F.mse_loss(self.through_parts(batch), batch)
            self.log("loss/train", loss)
            return loss

        def validation_step(self, batch: torch.Tensor, batch_idx: int) -> None:
            self.log("loss/held_out", F.mse_loss(self.through_parts(batch), batch), batch_size=len(batch))

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), lr=RATE)

    return Task()


def _backend(factor: float, owned: Mapping[int, str]) -> tuple[Callable[..., Any], Plain]:
    """Return a backend, and what it keeps: the graphs that Dynamo captured, as data.

    `owned` has the names of parameters by address. Each result of a graph is multiplied by `factor`.
    """
    kept: Plain = {"graphs": []}

    def backend(graph_module: Any, inputs: Any) -> Any:
        run = graph_module.forward
        kept["graphs"].append(_written(graph_module, inputs, owned))
        return lambda *args: tuple(r * factor if isinstance(r, torch.Tensor) else r for r in run(*args))

    return backend, kept


def _written(graph_module: Any, inputs: Sequence[Any], owned: Mapping[int, str]) -> Plain:
    """Return a graph as data, and what its inputs are: a parameter's name, `hidden` or `size`."""
    from course_lib.graph import to_data

    names = [owned.get(each.data_ptr(), "hidden") if isinstance(each, torch.Tensor) else "size" for each in inputs]
    graph, own = to_data(graph_module)
    return {"graph": graph, "own": list(own), "inputs": names}


def compile_and_fit(
    answer: Callable[..., Any], kind: str, seed: int, factor: float, train: Sequence[int], held_out: Sequence[int]
) -> Any:
    """Compile a task by the answer, train and validate on batches of these sizes, and report the captured graphs.

    `training` is the number of those captured before validation. The first loss shows `factor`.
    """
    import lightning

    torch._dynamo.reset()
    after_training, losses, made = [], [], _task(kind, seed)
    backend, kept = _backend(factor, {each.data_ptr(): name for name, each in made.named_parameters()})

    class Look(lightning.Callback):
        def on_train_batch_end(self, trainer: Any, task: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
            losses.append(float(outputs["loss"]))

        def on_validation_start(self, trainer: Any, task: Any) -> None:
            after_training.append(len(kept["graphs"]))

    with _quiet():
        task = answer(made, backend)
        if not isinstance(task, lightning.LightningModule):
            return {"class": type(task).__name__}
        trainer = _trainer(logger=False, callbacks=[Look()])
        trainer.fit(
            task, *(_loader([rows(seed + i, size) for i, size in enumerate(each)]) for each in (train, held_out))
        )
    return {"training": after_training[0], "graphs": kept["graphs"], "loss": losses[0]}


def exchange_checkpoints(answer: Callable[..., Any], kind: str, seed: int, factor: float) -> Any:
    """Save and load state dicts of eager and compiled tasks in all four combinations.

    Report for each the error, or the output of the loading task for `rows(seed, 4)`, and the graphs that were captured.
    """
    import lightning

    torch._dynamo.reset()
    found: Plain = {}
    owned: dict[int, str] = {}
    alive: list[nn.Parameter] = []  # so that no address is given away twice
    backend, kept = _backend(factor, owned)

    def made(compiled: bool, weights: int) -> Any:
        task = _task(kind, weights)
        alive.extend(task.parameters())
        owned.update({parameter.data_ptr(): name for name, parameter in task.named_parameters()})
        return answer(task, backend) if compiled else task

    with _quiet():
        for saves in (False, True):
            for loads in (False, True):
                source, target = made(saves, seed), made(loads, seed + 1)
                if loads and not isinstance(target, lightning.LightningModule):
                    return {"class": type(target).__name__}
                with torch.no_grad():
                    source.eval().through_parts(rows(seed, 4))  # what is compiled at its first call is compiled now
                    state = {name: value.clone() for name, value in source.state_dict().items()}
                    name = f"{'compiled' if saves else 'eager'} to {'compiled' if loads else 'eager'}"
                    try:
                        target.load_state_dict(state)
                    except RuntimeError as error:
                        found[name] = str(error)[:300]
                        continue
                    found[name] = target.eval().through_parts(rows(seed, 4)).tolist()
    return {"found": found, "graphs": kept["graphs"]}


def counters(part: nn.Module, batch: torch.Tensor) -> dict[str, float]:
    """Return five numbers that depend on all weights of a part and on a batch: sums with other factors for each."""
    held = torch.cat([each.detach().flatten() for each in (*part.parameters(), batch)]).double()
    places = torch.arange(len(held), dtype=torch.float64)
    return {f"C{number}": float((held * torch.cos(number * places)).sum() * 1000) for number in range(1, 6)}


def leave_trace(part: nn.Module) -> None:
    """Move the weights a little, as the counting function does, so that all later counters differ."""
    with torch.no_grad():
        next(part.parameters()).add_(0.01)


def count_in_turn(answer: Callable[..., Any], runs: Sequence[Mapping[str, Any]], seed: int) -> Any:
    """Train one task in all runs, with callbacks of the answer; report the event files of the last run.

    The counting function moves the weights. So later counters show when it was called.
    """
    task, found = _task("a model", seed), Plain()

    def count(counted: Any, batch: torch.Tensor) -> dict[str, float]:
        found = counters(counted.model, batch)
        leave_trace(counted.model)
        return found

    for run in runs:
        found = _counted(answer, task, count, seed, **run)
    return found


def _counted(
    answer: Callable[..., Any], task: Any, count: Any, seed: int, *, on: bool, logs: bool, **lengths: int
) -> Plain:
    """Train once; an epoch has so many `steps`, and each the same batches."""
    import lightning
    from lightning.pytorch.loggers import TensorBoardLogger

    accumulate = lengths["accumulate"]
    with _quiet(), tempfile.TemporaryDirectory() as folder:
        callbacks = answer(count, lengths["every"], on)
        if not isinstance(callbacks, list) or not all(isinstance(c, lightning.Callback) for c in callbacks):
            return {"class": type(callbacks).__name__}
        logger = TensorBoardLogger(folder) if logs else None
        options = {"accumulate_grad_batches": accumulate, "max_epochs": lengths["epochs"]}
        epoch = [rows(seed + i, 2) for i in range(lengths["steps"] * accumulate)]
        _trainer(logger=logger or False, callbacks=list(callbacks), **options).fit(task, _loader(epoch))
        if logger:
            logger.finalize("success")
        files = [base64.b64encode(path.read_bytes()).decode() for path in Path(folder).rglob("*tfevents*")]
    return {"files": files}
