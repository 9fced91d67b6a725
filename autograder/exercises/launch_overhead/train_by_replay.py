"""Exercise 15.4: make a training step that can be captured, and replay it."""

from typing import Any

import torch

from autograder.exercises.launch_overhead.replay_by_shape import LARGEST_SEED, agree, require_replays, rows_of, values
from autograder.exercises.programs import replayed_runs
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import counts, entries

STEPS = 20
READ_AGAIN = 0.5  # of the reads of an eager step: others write a step with fewer


class Trained:
    """Twenty steps of an answer, as the worker reports them, beside those of the eager loop."""

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        optimizer: str = "SGD",
        *,
        dropout: float = 0.0,
        running: bool = False,
    ) -> None:
        seed = draw.integer(0, LARGEST_SEED)
        self.run = {"seed": seed, "steps": STEPS, "optimizer": optimizer, "dropout": dropout, "running": running}
        report = entries(answer.employ(replayed_runs, "train_in_turn", run=self.run))
        if "class" in report:
            raise CheckFailedError(
                f"Expected a function that returns a tensor, and got a {str(report['class'])[:40]}. "
                "replayed_training returns a function of a batch; that one returns the loss as a tensor."
            )
        self.losses, self.later = rows_of(report, "losses", STEPS), rows_of(report, "later", STEPS)
        self.host_reads = counts(report.get("host_reads"), STEPS)
        self._eager()
        self.state = rows_of(report, "state", len(self.expected_state))
        self.gradients = rows_of(report, "gradients", len(self.expected_gradients))
        self.inputs = rows_of(report, "inputs", STEPS)
        middles = rows_of(report, "middles", STEPS)
        require_replays(rows_of(report, "reads", STEPS), int(READ_AGAIN * self.eager_reads), middles)

    def _eager(self) -> None:
        """Train by the eager loop, with the same random numbers."""
        with torch.random.fork_rng(devices=[]):
            model, optimizer, self.batches = replayed_runs.made(self.run)
            torch.manual_seed(self.run["seed"])
            self.expected_losses = []
            for batch in self.batches:
                with replayed_runs.Witness() as witness:
                    optimizer.zero_grad(set_to_none=False)
                    loss = model(batch).square().mean()
                    loss.backward()
                    optimizer.step()
                self.expected_losses.append(loss.detach())
        self.eager_reads = len(witness.reads)
        self.expected_state = model.state_dict()
        self.expected_gradients = [each.grad for each in model.parameters() if each.grad is not None]

    def require_losses(self, why: str) -> None:
        """Raise `CheckFailedError` unless the losses were those of the eager loop when they came back."""
        for step, (found, expected) in enumerate(zip(self.losses, self.expected_losses, strict=True), 1):
            if not agree(found, expected):
                raise CheckFailedError(f"{_told(found, float(expected), step)} {why}")


def _told(found: Any, expected: float, step: int) -> str:
    """Return a sentence about a loss that is wrong."""
    shape, reported = values(found)
    if shape:
        return f"The loss of step {step} has shape {tuple(shape)}; the mean is one number."
    if reported in ([], [None]):
        return f"The loss of step {step} is no number: a capture computes nothing, so replay before you return."
    return f"The loss of step {step} is {reported[0]:.7g}; the eager loop has {expected:.7g}."


def _losses(answer: AnalysisAnswer, draw: Draw) -> None:
    Trained(answer, draw).require_losses(
        "A warm-up trains: after it, copy the weights from before back into the parameters. In each step, copy_ the "
        "batch into the static one."
    )


def _weights(answer: AnalysisAnswer, draw: Draw) -> None:
    trained = Trained(answer, draw)
    for found, (name, expected) in zip(trained.state, trained.expected_state.items(), strict=True):
        if not agree(found, expected):
            raise CheckFailedError(
                f"After {STEPS} steps `{name}` differs from the eager loop's. Each call is one step of the same model, "
                "whose parameters keep their memory; a warm-up leaves no trace in them."
            )


def _batches(answer: AnalysisAnswer, draw: Draw) -> None:
    trained = Trained(answer, draw)
    for place, (found, expected) in enumerate(zip(trained.inputs, trained.batches, strict=True)):
        if not agree(found, expected):
            raise CheckFailedError(
                f"After {STEPS} steps, batch {place + 1} holds other numbers. The static batch is written in each "
                "step: clone() the example for it."
            )


EXERCISE = Exercise(
    title="Train by replay",
    kind=Kind.ANALYSIS,
    entry_point="replayed_training",
    points=8,
    wall_s=60,
    hints=(
        "Write one function without arguments that does a whole step on the static batch; warm it up, then capture it.",
        "Before the warm-up, clone the values of model.state_dict() and the random state; afterwards copy them back.",
        "The first step makes the optimizer's state, the second uses it: warm up twice, then zero_() the tensors of "
        "optimizer.state. Return a clone of the loss.",
    ),
    checks=(
        Check("losses of twenty steps", "losses", 2, _losses),
        Check("weights after twenty steps", "weights", 1, _weights),
        Check("batches stay as they are", "inputs", 1, _batches),
    ),
)
