"""Exercise 01.5: train a masked language model, and log the training for TensorBoard."""

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch.nn import functional as F

from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.module import FOLDER, Build, Description, Events, ModuleAnswer, Points, read_events
from course_lib.models import MaskedLanguageModel, TransformerConfig

LETTERS, DIALECTS = 24, 4
MASK = LETTERS
STEPS, BATCH, LENGTH, HELD_OUT = 64, 32, 16, 256
SIZES = {
    "hidden_size": 32,
    "num_heads": 2,
    "intermediate_size": 64,
    "num_layers": 1,
    "vocab_size": LETTERS + 1,
    "max_positions": LENGTH,
    "dropout": 0.0,
}
LEAST_STEPS = 50
CLEARLY_NATS = 0.1  # required difference between loss and baseline, too large for chance
IGNORED = -100
LARGEST_SEED = 10**6
TINY_RATE = 1e-4  # AdamW moves a weight by about the learning rate in a step


@dataclass(frozen=True)
class Text:
    """Random text in an artificial language, to train on and to test with: each row uses one of four alphabets.

    The alphabets are drawn at random for each grading, so an answer cannot contain what it should learn.

    The frequency of letters does not help to predict a hidden letter, but the letters around it almost determine it.
    """

    hidden: torch.Tensor  # (steps, batch, length)
    labels: torch.Tensor
    held_out_hidden: torch.Tensor  # (rows, length)
    held_out_labels: torch.Tensor

    @classmethod
    def drawn(cls, draw: Draw) -> "Text":
        """Return random rows for training, and held-out rows of the same language."""
        rows = STEPS * BATCH + HELD_OUT
        alphabets = torch.tensor(draw.sample(range(LETTERS), LETTERS)).view(DIALECTS, -1)
        uniform = draw.normal(rows, LENGTH + 1, dtype=torch.float64).mul(1e6).long().abs()
        dialects, places = uniform[:, 0] % DIALECTS, uniform[:, 1:] % alphabets.shape[1]
        tokens = alphabets[dialects].gather(1, places)
        labels = torch.where(draw.keep(rows, LENGTH, probability=0.15), tokens, IGNORED)
        hidden = torch.where(labels == IGNORED, tokens, MASK)
        shape = (STEPS, BATCH, LENGTH)
        return cls(
            hidden[:-HELD_OUT].reshape(shape),
            labels[:-HELD_OUT].reshape(shape),
            hidden[-HELD_OUT:],
            labels[-HELD_OUT:],
        )

    def unigram_nats(self) -> float:
        """Return the held-out loss of a baseline that predicts the letter frequencies of the training labels."""
        asked = self.labels[self.labels != IGNORED]
        shares = torch.bincount(asked, minlength=LETTERS).double() / len(asked)
        return -float(shares.log()[self.held_out_labels[self.held_out_labels != IGNORED]].mean())


def model_loss(state: Mapping[str, torch.Tensor], hidden: torch.Tensor, labels: torch.Tensor) -> float:
    """Return the loss of our own model with these weights, computed in the host."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        model = MaskedLanguageModel(TransformerConfig(**SIZES)).eval()  # type: ignore[arg-type]
        model.load_state_dict(dict(state))
        logits = model(hidden)
        return float(F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED))


@dataclass(frozen=True)
class Run:
    """One call of the student's function: its training data and its results."""

    text: Text
    seed: int
    state: Mapping[str, torch.Tensor]
    written: Events | CheckFailedError

    @property
    def events(self) -> Events:
        """Return the run's TensorBoard events; raise `CheckFailedError` if there are none."""
        if isinstance(self.written, CheckFailedError):
            raise self.written
        return self.written


def trained(answer: ModuleAnswer, text: Text, seed: int) -> Description:
    """Return the result of the student's function; raise `CheckFailedError` unless it has the model's weights."""
    found = answer.describe(
        Build((text.hidden, text.labels), {"seed": seed, "folder": FOLDER, "sizes": SIZES}), training=False
    )
    with torch.random.fork_rng(devices=[]):
        expected = MaskedLanguageModel(TransformerConfig(**SIZES)).state_dict()  # type: ignore[arg-type]
    for name, value in expected.items():
        given = found.parameters.get(name)
        if given is None or given.shape != value.shape or given.dtype != value.dtype:
            raise CheckFailedError(
                f"The model that was returned has no `{name}` of shape {tuple(value.shape)}; return the trained "
                "MaskedLanguageModel(TransformerConfig(**sizes))."
            )
        if not bool(torch.isfinite(given).all()):
            raise CheckFailedError(f"`{name}` is not finite after training; lower the learning rate.")
    return replace(found, parameters={name: found.parameters[name] for name in expected})


_runs: weakref.WeakKeyDictionary[ModuleAnswer, Run | CheckFailedError] = weakref.WeakKeyDictionary()


def one_run(answer: ModuleAnswer, draw: Draw) -> Run:
    """Return the run that all checks share, since training takes time; the first check makes it.

    Raises `CheckFailedError` in each check if the run gave no weights.
    """
    if answer not in _runs:
        try:
            _runs[answer] = _first_run(answer, draw)
        except CheckFailedError as error:
            _runs[answer] = error
    run = _runs[answer]
    if isinstance(run, CheckFailedError):
        raise run
    return run


def _first_run(answer: ModuleAnswer, draw: Draw) -> Run:
    text, seed = Text.drawn(draw), draw.integer(0, LARGEST_SEED)
    found = trained(answer, text, seed)
    written: Events | CheckFailedError
    try:
        written = read_events(answer.clean, found.files)
    except CheckFailedError as error:
        written = error
    return Run(text, seed, found.parameters, written)


def _scalars(answer: ModuleAnswer, draw: Draw) -> None:
    scalars = one_run(answer, draw).events.scalars
    if len(scalars) < 2:
        raise CheckFailedError(
            f"The event file has the scalars {', '.join(scalars) or 'none'}; two at least are asked for, such as the "
            "loss and the length of the gradient."
        )
    for tag, points in scalars.items():
        steps = [step for step, _ in points]
        if len(points) > 1 and len(set(steps)) == 1:
            raise CheckFailedError(
                f"All points of `{tag}` have the step {steps[0]}; give add_scalar the step as third."
            )
        if any(later <= earlier for earlier, later in pairwise(steps)):
            raise CheckFailedError(f"The steps of `{tag}` do not rise from point to point.")
    full = [tag for tag, points in scalars.items() if len(points) >= LEAST_STEPS]
    if len(full) < 2:
        raise CheckFailedError(
            f"{len(full)} scalars have {LEAST_STEPS} points or more; two are asked for, written after every step."
        )


def _graph(answer: ModuleAnswer, draw: Draw) -> None:
    nodes = one_run(answer, draw).events.graph_nodes
    if nodes < 10:
        raise CheckFailedError(
            f"The event file holds a graph of {nodes} nodes; add the model's with writer.add_graph(model, one_batch)."
        )


def _logged_loss(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that some scalar equals the loss of this run in the first step and in the last step.

    The first loss is known, and the last one is computed here from the weights.
    """
    run = one_run(answer, draw)
    untrained = math.log(SIZES["vocab_size"])
    last = model_loss(run.state, run.text.hidden[-10:].flatten(0, 1), run.text.labels[-10:].flatten(0, 1))
    unsteady = 0.4 if learned(run.state, run.text) else 1.5  # what does not learn, another check counts
    if not any(_describes(points, untrained, last, unsteady) for points in run.events.scalars.values()):
        raise CheckFailedError(
            f"No scalar is the training loss: it begins near {untrained:.1f}, the loss of an even guess, and ends near "
            f"{last:.1f}, which is what the returned model gets on the last batches."
        )


def _describes(points: Points, first: float, last: float, unsteady: float) -> bool:
    if len(points) < LEAST_STEPS:
        return False
    values = [value for _, value in points]
    return abs(values[0] - first) < 0.5 and abs(sum(values[-10:]) / 10 - last) < unsteady


def learned(state: Mapping[str, torch.Tensor], text: Text) -> bool:
    """Tell whether these weights predict the last batches clearly better than the frequencies of letters."""
    found = model_loss(state, text.hidden[-10:].flatten(0, 1), text.labels[-10:].flatten(0, 1))
    return found < text.unigram_nats() - CLEARLY_NATS


def largest_move(state: Mapping[str, torch.Tensor]) -> float:
    """Return how far the weights of LayerNorms are from 1, where they begin."""
    return max(float((value - 1).abs().max()) for name, value in state.items() if name.endswith("norm.weight"))


def _learns(answer: ModuleAnswer, draw: Draw) -> None:
    run = one_run(answer, draw)
    if learned(run.state, run.text):
        return
    found = model_loss(run.state, run.text.hidden[-10:].flatten(0, 1), run.text.labels[-10:].flatten(0, 1))
    raise CheckFailedError(
        f"On the batches it learned from last, the model loses {found:.2f} nats a token; guessing by how often a "
        f"letter occurs loses {run.text.unigram_nats():.2f}. {_why_not(run)}"
    )


def _why_not(run: Run) -> str:
    """Return the likely reason why the model did not learn."""
    hidden = run.text.hidden[-10:].flatten(0, 1)
    if model_loss(run.state, hidden, hidden) < 0.5:
        return "It learned to repeat its input: compare the logits with the labels, not with the hidden tokens."
    moved = largest_move(run.state)
    if moved == 0:
        return "The weights are as they were made: call optimizer.step() after loss.backward() in every step."
    if moved < STEPS * TINY_RATE:
        return (
            f"No weight of a LayerNorm moved by more than {moved:.1g}: the learning rate is too small. One of about "
            "0.01 suits so few steps."
        )
    return (
        "Does every step zero the gradients, go backward and step? Without zero_grad they add up. A learning rate of "
        "about 0.01 suits so few steps."
    )


EXERCISE = Exercise(
    title="Train, and write down how it went",
    kind=Kind.MODULE,
    entry_point="train",
    points=12,
    masked=("course_lib.training",),
    wall_s=180,
    checks=(
        Check("two scalars with rising steps", "scalars", 2, _scalars),
        Check("the model's graph", "graph", 1.3, _graph),
        Check("a scalar that is the training loss", "logged loss", 1.9, _logged_loss),
        Check("the model learned", "learning", 1.9, _learns),
    ),
    hints=(
        "Five lines make a step: logits, loss, zero_grad, backward, step. What must be made once, before the loop?",
        "Seed, model, AdamW; then a `SummaryWriter` of the folder, in a `with`, around add_graph and the loop over the "
        "zipped batches. `enumerate` counts the steps, from 1.",
        "`add_scalar` takes a tag, a number and the step, so the loss needs `.item()`. The length of the gradient is "
        "what `clip_grad_norm_` returns, after backward and with a limit of 1.",
    ),
)
