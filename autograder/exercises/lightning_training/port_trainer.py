"""Exercise 16.1: port the trainer of notebook 01 to Lightning, with equal losses at each step."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from autograder.exercises.programs import lightning_runs
from autograder.exercises.programs.lightning_runs import Pairs
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import entries, numbers
from course_lib.models import MaskedLanguageModel, TransformerConfig

STEPS = 20
LARGEST_SEED = 10**6
NEAR_NATS = 1e-4  # losses of equal programs differ by less: Lightning sums the gradient's length in another order


def model_of(run: Mapping[str, Any]) -> nn.Module:
    """Return the model of a run, with weights drawn by its seed."""
    torch.manual_seed(run["seed"])
    return MaskedLanguageModel(TransformerConfig(**run["sizes"]))


def loss_of(model: nn.Module, tokens: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Return the mean loss of a batch, in nats."""
    return F.cross_entropy(model(tokens).flatten(0, 1), labels.flatten())


def losses_of_the_loop(run: Mapping[str, Any], at: int, factor: float) -> list[float]:
    """Return the losses of the trainer of notebook 01, one a step, with weights scaled before step `at`."""
    losses = []
    with torch.random.fork_rng(devices=[]):
        model = model_of(run)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
        for step, (tokens, labels) in enumerate(run["train"]):
            if step == at:
                lightning_runs.scale_weights(model, factor)
            torch.manual_seed(run["seed"] + step)
            loss = loss_of(model, tokens, labels)
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(loss.item())
    return losses


class Fitted:
    """One training of the port, as the worker reports it."""

    def __init__(self, answer: AnalysisAnswer, draw: Draw, dropout: float) -> None:
        seed = draw.integer(0, LARGEST_SEED)
        self.run = lightning_runs.run_of(seed, STEPS, dropout)
        self.at, self.factor = draw.integer(4, STEPS - 4), draw.integer(110, 130) / 100
        changed = {"at": self.at, "factor": self.factor}
        report = answer.employ(lightning_runs, "fit_port", seed=seed, steps=STEPS, dropout=dropout, **changed)
        if not isinstance(report, dict):
            raise MalformedAnswerError
        if "classes" in report:
            raise CheckFailedError(
                f"port returned {', '.join(map(str, report['classes']))[:80]}; expected a LightningModule, a "
                "LightningDataModule and a TensorBoardLogger, in this order."
            )
        self.losses = numbers(report.get("losses"))
        self.state, self.scalars = entries(report.get("state")), entries(report.get("scalars"))
        self.before = entries(report.get("before"))

    def loss_of(self, weights: Mapping[str, Any], batches: Pairs) -> list[float]:
        """Return the losses of reported weights on batches, without dropout; raise if a weight is missing."""
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            model = model_of(self.run).eval()
            model.load_state_dict({n: weight_of(weights, n, value) for n, value in model.state_dict().items()})
            return [float(loss_of(model, *batch)) for batch in batches]

    def points(self, tag: str) -> tuple[list[float], list[float]]:
        """Return the steps and the values of a scalar; raise `CheckFailedError` if nothing was logged by this name."""
        points = self.scalars.get(tag)
        if not isinstance(points, list):
            known = ", ".join(sorted(map(str, self.scalars)))[:80]
            raise CheckFailedError(
                f"The logger's folder has no scalar `{tag}`; it has {known or 'none'}. Call self.log with this name, "
                'and return TensorBoardLogger(run["folder"]).'
            )
        pairs = [numbers(point, 2) for point in points]
        return [step for step, _ in pairs], [value for _, value in pairs]


def weight_of(state: Mapping[str, Any], name: str, like: torch.Tensor) -> torch.Tensor:
    """Return the weight of a reported state whose name ends in that of the model's."""
    found = next((value for key, value in state.items() if key.endswith(name)), None)
    try:
        weights = torch.tensor(found, dtype=like.dtype)
    except (TypeError, ValueError, RuntimeError):
        weights = torch.empty(0)
    if weights.shape != like.shape:
        raise CheckFailedError(f"The trained task has no weights `{name}` of the model; keep the model as its part.")
    return weights


def require_equal_losses(found: Sequence[float], expected: Sequence[float], about: str, at: int) -> None:
    """Raise `CheckFailedError` unless the losses are equal step by step."""
    if len(found) != len(expected):
        raise CheckFailedError(
            f"{about}, one epoch of {len(expected)} batches took {len(found)} steps; give one batch of "
            'run["train"] a step: DataLoader(run["train"], batch_size=None).'
        )
    pairs = enumerate(zip(found, expected, strict=True))
    step = next((i for i, (mine, right) in pairs if not math.isclose(mine, right, abs_tol=NEAR_NATS)), None)
    if step is None:
        return
    why = {
        0: "Draw the weights after torch.manual_seed(run['seed']), seed again before the loss, and keep the order of "
        "the batches.",
        at: "Before it the grader scaled the weights. Compute each loss in training_step, from the task's weights.",
        1: "The first loss is equal, so the weights are. Look at the optimiser, AdamW with lr=0.01, and at the seed.",
    }.get(step, "Earlier losses are equal. Look at the order of the batches, and at the seed of each step.")
    raise CheckFailedError(
        f"{about}, step {step} loses {found[step]:.5f}; the loop of notebook 01 loses {expected[step]:.5f}. {why}"
    )


def equal_losses(dropout: float, about: str) -> Callable[[AnalysisAnswer, Draw], None]:
    """Return a check that the losses are those of the loop."""

    def run(answer: AnalysisAnswer, draw: Draw) -> None:
        fitted = Fitted(answer, draw, dropout)
        require_equal_losses(fitted.losses, losses_of_the_loop(fitted.run, fitted.at, fitted.factor), about, fitted.at)

    return run


def _logged(answer: AnalysisAnswer, draw: Draw) -> None:
    fitted = Fitted(answer, draw, 0.0)
    steps, values = fitted.points("loss/train")
    if steps != list(range(len(fitted.losses))):
        raise CheckFailedError(
            f"`loss/train` has {len(steps)} points; expected one for each of {len(fitted.losses)} steps. Log in "
            "training_step, without on_epoch."
        )
    for step, (value, loss) in enumerate(zip(values, fitted.losses, strict=True)):
        if not math.isclose(value, loss, abs_tol=NEAR_NATS):
            raise CheckFailedError(
                f"`loss/train` at step {step} is {value:.5f}; training_step returned {loss:.5f}. Log what you return."
            )
    losses = fitted.loss_of(fitted.before, fitted.run["train"])
    if not any(math.isclose(values[fitted.at], loss, abs_tol=10 * NEAR_NATS) for loss in losses):
        raise CheckFailedError(
            f"`loss/train` at step {fitted.at} is {values[fitted.at]:.5f}, which the weights before this step lose on "
            "no batch. Compute the loss from the weights of the task and the batch."
        )


EXERCISE = Exercise(
    title="Port the trainer to Lightning",
    kind=Kind.ANALYSIS,
    entry_point="port",
    points=10,
    wall_s=120,
    masked=("course_lib.training",),
    hints=(
        "Each line of the loop has its place: the model in __init__, the loss in training_step, the optimiser in "
        "configure_optimizers. backward, step, clipping and zero_grad are the Trainer's.",
        'Two seeds: torch.manual_seed(run["seed"]) before the model is made, and run["seed"] + self.global_step before '
        "each training loss.",
        "The mean over a held-out text weighs each batch by its letters to guess: self.log(name, loss, batch_size=n) "
        "with n = the number of labels that are not -100.",
    ),
    checks=(
        Check("losses equal step by step", "losses", 3, equal_losses(0.0, "Without dropout")),
        Check("the loss of each step in TensorBoard", "logged losses", 2, _logged),
    ),
)
