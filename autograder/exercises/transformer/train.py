"""Exercise 01.5: train a masked language model, and log the training for TensorBoard."""

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from autograder.exercises.programs.dialects import IGNORED, LENGTH, LETTERS, STEPS, Text
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.module import FOLDER, Build, Description, Events, ModuleAnswer, Points, read_events
from autograder.host.session import AnswerFailedError
from course_lib.models import MaskedLanguageModel, TransformerConfig

SIZES = {
    "hidden_size": 32,
    "num_heads": 2,
    "intermediate_size": 64,
    "num_layers": 1,
    "vocab_size": LETTERS + 1,
    "max_positions": LENGTH,
    "dropout": 0.0,
}
LEAST_STEPS = STEPS
CLEARLY_NATS = 0.1  # required difference between loss and baseline, too large for chance
NEAR_NATS = 0.4  # allowed distance of the last losses from that of the returned weights
ROUNDED_NATS = 0.005  # allowed distance of a logged loss from that of the weights before its step
CLEAR_RISE_NATS = 0.5  # rise of the loss by wrong labels from which on it must be seen
LARGEST_SEED = 10**6
TRIES = 3  # one right training in some 150 has not begun to learn after these steps
OPERATORS = {nn.Linear: "aten::linear", nn.Embedding: "aten::embedding", nn.LayerNorm: "aten::layer_norm"}
TINY_RATE = 1e-4  # AdamW moves a weight by about the learning rate in a step


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
    """Return the first of some runs in which the model learned, or the first of all if it never did."""
    text, runs = Text.drawn(draw), []
    for _ in range(TRIES):
        runs.append(run_on(answer, text, draw.integer(0, LARGEST_SEED)))
        if learned(runs[-1].state, text):
            return runs[-1]
    return runs[0]


_others: weakref.WeakKeyDictionary[ModuleAnswer, tuple[Run, int, int]] = weakref.WeakKeyDictionary()


def other_run(answer: ModuleAnswer, draw: Draw) -> tuple[Run, int, int]:
    """Return the run of the same seed with other labels in two drawn batches, and their numbers, which count from 0."""
    if answer not in _others:
        run, places = one_run(answer, draw), (draw.integer(8, 48), draw.integer(STEPS - 6, STEPS - 2))
        _others[answer] = (run_on(answer, run.text.changed(*places), run.seed), *places)
    return _others[answer]


def run_on(answer: ModuleAnswer, text: Text, seed: int) -> Run:
    """Call the student's function, and read the events that it wrote."""
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
    full = {tag: [value for _, value in points] for tag, points in scalars.items() if len(points) >= LEAST_STEPS}
    if len(full) < 2:
        raise CheckFailedError(
            f"{len(full)} scalars have {LEAST_STEPS} points or more; two are asked for, written after every step."
        )
    told = {tuple(values) for tag, values in full.items() if not _is_known_before(answer, draw, tag, values)}
    if len(told) < 2:
        raise CheckFailedError(
            f"Of the scalars {', '.join(full)} only {len(told)} tell of this training. The others repeat a scalar, or "
            "are the same for other labels and not the learning rate; write, say, the length of the gradient."
        )


def _is_known_before(answer: ModuleAnswer, draw: Draw, tag: str, values: list[float]) -> bool:
    """Tell whether a scalar says nothing of the training: it is the same with other labels, and no learning rate."""
    changes = [later - earlier for earlier, later in pairwise(values)]
    if min(changes) > 0 and max(changes) - min(changes) < 1e-3 * max(changes):
        return True  # it counts the steps, in whatever unit
    try:
        others = other_run(answer, draw)[0].events.scalars.get(tag, ())
    except (CheckFailedError, AnswerFailedError) as error:
        if isinstance(error, AnswerFailedError) and error.fatal:
            raise
        return False  # another check tells what is wrong with that run
    return [value for _, value in others] == values and not _is_learning_rate(answer, draw, values)


def _is_learning_rate(answer: ModuleAnswer, draw: Draw, values: list[float]) -> bool:
    """Tell whether AdamW moves a weight by about one of these numbers in the first two steps; true if it is unknown.

    The first or largest one is enough, since a schedule may depend on how many steps will come. The second step counts
    because the rate may be 0 in the first one, and is the next step's if it is logged after `scheduler.step()`.
    """
    run = one_run(answer, draw)
    before: Mapping[str, torch.Tensor] = {}
    for steps in (1, 2):
        try:
            after = trained(answer, run.text.until(steps), run.seed).parameters
        except AnswerFailedError as error:
            if error.fatal:
                raise
            return True
        moved = largest_move(after, before)
        if any(abs(moved - number) < 0.25 * moved for number in (*values[:2], max(values))):
            return True  # weight decay moves it a little further
        before = after
    return False


def _graph(answer: ModuleAnswer, draw: Draw) -> None:
    found = one_run(answer, draw).events.graph_operators
    with torch.random.fork_rng(devices=[]):
        layers = [type(m) for m in MaskedLanguageModel(TransformerConfig(**SIZES)).modules()]  # type: ignore[arg-type]
    for layer, operator in OPERATORS.items():
        if found.get(operator, 0) < layers.count(layer):
            raise CheckFailedError(
                f"The event file holds a graph of {sum(found.values())} nodes, in which {operator} is called "
                f"{found.get(operator, 0)} times; the model calls it {layers.count(layer)} times. Add the model's own "
                "with writer.add_graph(model, one_batch)."
            )


def _logged_loss(answer: ModuleAnswer, draw: Draw) -> None:
    """Check that some scalar is the loss of each step, measured in this step.

    The first loss is known, and the last one is computed here from the weights. Between them, the host knows what the
    weights give, and what a change of the labels of some batch does to it.
    """
    run = one_run(answer, draw)
    untrained = math.log(SIZES["vocab_size"])
    last = model_loss(run.state, run.text.hidden[-10:].flatten(0, 1), run.text.labels[-10:].flatten(0, 1))
    unsteady = NEAR_NATS if learned(run.state, run.text) else 1.5  # what does not learn, another check counts
    tags = [tag for tag, points in run.events.scalars.items() if _describes(points, untrained, last, unsteady)]
    if not tags:
        raise CheckFailedError(
            f"No scalar is the training loss: it begins near {untrained:.1f}, the loss of an even guess, and ends near "
            f"{last:.1f}, which is what the returned model gets on the last batches."
        )
    others, place, late = other_run(answer, draw)
    complaints = [_complaint(answer, run, others, tag, place, late) for tag in tags]
    if all(complaints):
        raise CheckFailedError(complaints[0])


def _describes(points: Points, first: float, last: float, unsteady: float) -> bool:
    if len(points) < LEAST_STEPS:
        return False
    values = [value for _, value in points]
    return abs(values[0] - first) < 0.5 and abs(sum(values[-10:]) / 10 - last) < unsteady


def _complaint(answer: ModuleAnswer, run: Run, others: Run, tag: str, place: int, late: int) -> str:
    """Return why the numbers of a scalar are not those of each step; empty if they may be.

    `others` is a run with other labels in the batches number `place` and `late`, which count from 0.
    """
    told = f"`{tag}` is not the loss that each step had"
    before, after = ([value for _, value in each.events.scalars.get(tag, ())] for each in (run, others))
    if len(before) != len(after):
        return f"{told}: it has {len(before)} points in one run, and {len(after)} in another of as many batches."
    offset = len(before) - STEPS  # a point more at the beginning, or fewer
    first = next((i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a != b), len(before))
    if abs(first - offset - place) <= 1:
        # One step changes the loss most at the beginning, and batches differ most later. Of the first two losses the
        # second one shows whether the steps depend on how many will come.
        if complaint := _before_its_step(answer, run, tag, 2) or _before_its_step(answer, run, tag, place):
            return f"{told}: {complaint}"
    elif _is_reproducible(answer, run):
        return (
            f"{told}: with other labels in batch {place + 1}, its numbers should be the same before this batch, and "
            "differ in it. Write loss.item() in the step that computed it."
        )
    hidden, wrong, right = (each[late] for each in (run.text.hidden, others.text.labels, run.text.labels))
    high, low = (model_loss(others.state, hidden, labels) for labels in (wrong, right))
    seen = max(after[max(late + offset - 1, 0) : late + offset + 2])
    if high - low > CLEAR_RISE_NATS and seen < (high + low) / 2:
        return (
            f"{told}: with wrong labels in batch {late + 1}, the model loses {high:.1f} there, and {seen:.1f} was "
            "logged."
        )
    return ""


def _before_its_step(answer: ModuleAnswer, run: Run, tag: str, place: int) -> str:
    """Return what is wrong with the loss logged for a batch, if the weights before its step lose something else on it.

    These weights are unknown if the answer does not run on fewer batches, for the task names their number, and if its
    steps depend on how many will come. In these cases nothing is said.
    """
    try:
        short = run_on(answer, run.text.until(place), run.seed)
    except AnswerFailedError as error:
        if error.fatal:
            raise
        return ""
    values, shorter = ([value for _, value in each.events.scalars.get(tag, ())] for each in (run, short))
    at = place + len(values) - STEPS
    if shorter != values[:at]:
        return ""
    expected = model_loss(short.state, run.text.hidden[place], run.text.labels[place])
    if abs(values[at] - expected) < ROUNDED_NATS:
        return ""
    return (
        f"on batch {place + 1} the model loses {expected:.2f} before its step, and {values[at]:.2f} was logged. "
        "Log the loss from which the step is computed: of this batch alone, and before optimizer.step()."
    )


def _is_reproducible(answer: ModuleAnswer, run: Run) -> bool:
    again = trained(answer, run.text, run.seed).parameters
    return all(torch.equal(run.state[name], again[name]) for name in again)


def learned(state: Mapping[str, torch.Tensor], text: Text) -> bool:
    """Tell whether these weights predict the last batches clearly better than the frequencies of letters."""
    found = model_loss(state, text.hidden[-10:].flatten(0, 1), text.labels[-10:].flatten(0, 1))
    return found < text.unigram_nats() - CLEARLY_NATS


def largest_move(state: Mapping[str, torch.Tensor], before: Mapping[str, torch.Tensor] | None = None) -> float:
    """Return how far the weights of LayerNorms are from those in `before`, or from 1, where they begin."""
    moves = (value - (before or {}).get(name, 1.0) for name, value in state.items() if name.endswith("norm.weight"))
    return max(float(move.abs().max()) for move in moves)


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
        Check("the model's graph", "graph", 1, _graph),
        Check("a scalar that is the training loss", "logged loss", 2, _logged_loss),
        Check("the model learned", "learning", 2, _learns),
    ),
    hints=(
        "Five lines make a step: logits, loss, zero_grad, backward, step. What must be made once, before the loop?",
        "Seed, model, AdamW; then a `SummaryWriter` of the folder, in a `with`, around add_graph and the loop over the "
        "zipped batches. `enumerate` counts the steps, from 1.",
        "`add_scalar` takes a tag, a number and the step, so the loss needs `.item()`. The length of the gradient is "
        "what `clip_grad_norm_` returns, after backward and with a limit of 1.",
    ),
)
