"""Naive graders of lesson 16, which believe what a training in their own process told them.

They belong to `naive_grader.py`, which finds them by name. A Trainer of a few lines stands for Lightning's, whose
import takes longer than a proof may.
"""

import tempfile
from types import SimpleNamespace

import torch
from torch import fx, nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from course_lib.models import MaskedLanguageModel, TransformerConfig

# What an answer defines, by the folder of the attacks on it.
ENTRY = {
    "16_compile_task": "compile_task",
    "16_counter_callback": "counter_callbacks",
    "16_port_trainer": "port",
}
NAMES = ("C1", "C2", "C3", "C4", "C5")
STEPS = 8


class Module(nn.Module):
    """A task; it keeps what it logs."""

    def __init__(self):
        super().__init__()
        self.logged = {}

    def log(self, name, value, batch_size=1):
        self.logged.setdefault(name, []).append(float(value))


class Callback:
    """A callback that does nothing."""

    def on_train_batch_end(self, trainer, task, outputs, batch, batch_idx):
        pass


class LambdaCallback(Callback):
    """A callback whose hook is a function in the instance."""

    def __init__(self, on_train_batch_end):
        self.on_train_batch_end = on_train_batch_end


class Logger:
    """A logger that keeps what it is given, by folder."""

    written = {}  # noqa: RUF012 - one for all, as files are

    def __init__(self, folder, version=0):
        self.folder = folder

    def log_metrics(self, values, step):
        for name, value in values.items():
            self.written.setdefault((self.folder, name), []).append((step, value))


callbacks = SimpleNamespace(LambdaCallback=LambdaCallback)
lightning = SimpleNamespace(
    LightningModule=Module,
    LightningDataModule=SimpleNamespace,
    Callback=Callback,
    pytorch=SimpleNamespace(callbacks=callbacks),
)
NAMESPACE = {
    "lightning": lightning,
    "TensorBoardLogger": Logger,
    "DataLoader": DataLoader,
    "MaskedLanguageModel": MaskedLanguageModel,
    "TransformerConfig": TransformerConfig,
}


def _fitted(answer):
    sizes = {"hidden_size": 8, "num_heads": 2, "intermediate_size": 16, "num_layers": 1, "vocab_size": 9}
    generator = torch.Generator().manual_seed(3)
    pairs = [tuple(torch.randint(8, (2, 6), generator=generator) for _ in range(2)) for _ in range(STEPS)]
    run = {"train": pairs, "held_out": pairs[:1], "seed": 5, "folder": tempfile.mkdtemp()}
    run["sizes"] = {**sizes, "max_positions": 6, "dropout": 0.0}
    task, data, _ = answer(run)
    losses = [float(task.training_step(batch, number)) for number, batch in enumerate(data.train_dataloader())]
    return run, task, losses


def training(answer):
    """Compares the returned losses with those of the loop, on the batches that it gave the answer before."""
    run, _, losses = _fitted(answer)
    torch.manual_seed(run["seed"])
    model, expected = MaskedLanguageModel(TransformerConfig(**run["sizes"])), []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    for number, (tokens, labels) in enumerate(run["train"]):
        torch.manual_seed(run["seed"] + number)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        expected.append(loss.item())
    return torch.allclose(torch.tensor(losses), torch.tensor(expected), atol=1e-4)


def logged(answer):
    """Compares what was logged with what was returned."""
    _, task, losses = _fitted(answer)
    return len(losses) == STEPS and torch.allclose(torch.tensor(task.logged["loss/train"]), torch.tensor(losses))


PRODUCTS = (F.linear, torch.ops.aten.addmm.default)


class _Backend:
    def __init__(self):
        self.graphs = self.products = 0

    def __call__(self, graph_module: fx.GraphModule, inputs):
        self.graphs += 1
        self.products += sum(node.target in PRODUCTS for node in graph_module.graph.nodes)
        return graph_module.forward


def backend(answer):
    """Believes the counts in a backend that everybody may call, and the names of the state dict."""
    counted, task = _Backend(), nn.Module()
    task.model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4))
    names = list(task.state_dict())
    task = answer(task, counted)
    for training_mode in (True, False):
        task.train(training_mode).model(torch.randn(3, 4))
    return list(task.state_dict()) == names and (counted.graphs, counted.products) == (2, 4)


def _counting(answer, on):
    calls, folder, logs = [], tempfile.mkdtemp(), True  # noqa: F841 - a hostile answer finds them
    task, trainer = Module(), SimpleNamespace(global_step=0, logger=Logger(folder), loggers=[Logger(folder)])
    task.trainer = trainer
    every = 2

    def count(task, batch):
        calls.append([task.trainer.global_step, 1.0, 1])
        return dict.fromkeys(NAMES, 1.0)

    found, outputs = answer(count, every, on), {"loss": torch.ones(())}

    def fit():
        for number in range(3 * every + 1):
            trainer.global_step += 1
            for each in found:
                each.on_train_batch_end(trainer, task, outputs, torch.ones(2), number)

    fit()
    return found, [step for step, _, _ in calls]


def called(answer):
    """Believes the list of calls, which lies in the frame that called the answer."""
    return _counting(answer, True)[1] == [2, 4, 6] and not _counting(answer, False)[1]
