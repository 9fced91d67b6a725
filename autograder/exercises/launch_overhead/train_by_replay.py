"""Exercise 15.4: make a training step that can be captured, and replay it."""

from collections.abc import Sequence

import torch

from autograder.exercises.launch_overhead.replay_by_shape import LARGEST_SEED, agree, require_tensors
from autograder.exercises.programs import replayed_runs
from autograder.exercises.programs.launch_machine import LaunchMachine, require_replays
from autograder.host.channel import MalformedAnswerError
from autograder.host.draw import Draw
from autograder.host.exercise import Check, CheckFailedError, Exercise, Kind
from autograder.host.kinds.analysis import AnalysisAnswer
from autograder.host.kinds.reports import entries
from course_lib.launches.launch_record import LaunchRecorder

STEPS = 20
REPLAYED = 0.5  # of the launches of an eager step: others write a step with fewer


class Trained:
    """Twenty steps of an answer, whose launches ran again on weights and batches that were drawn then."""

    def __init__(
        self,
        answer: AnalysisAnswer,
        draw: Draw,
        optimizer: str = "SGD",
        *,
        dropout: float = 0.0,
        running: bool = False,
    ) -> None:
        run = {"steps": STEPS, "optimizer": optimizer, "dropout": dropout, "running": running}
        seed = draw.integer(0, LARGEST_SEED)
        report = entries(answer.employ(replayed_runs, "train_in_turn", run={**run, "seed": seed}))
        require_tensors(report, "replayed_training returns a function of a batch")
        seed = draw.integer(0, LARGEST_SEED)
        model, steps, batches = replayed_runs.made({**run, "seed": seed})
        self.held = replayed_runs.held(model, batches)
        places = [tensor for each in self.held.values() for tensor in each.values()]
        self.machine = LaunchMachine(report, places, [seed])
        if len(self.machine.calls) != STEPS:
            raise MalformedAnswerError
        self.expected_losses, launched = _eager(model, steps, batches, seed)
        require_replays(self.machine.calls, int(REPLAYED * launched))

    def require_losses(self, why: str) -> None:
        """Raise `CheckFailedError` unless the losses were those of the eager loop when they came back."""
        pairs = zip(self.machine.calls, self.expected_losses, strict=True)
        for step, (call, expected) in enumerate(pairs, 1):
            if not agree(call.output, expected):
                raise CheckFailedError(f"{_told(call.output, float(expected), step)} {why}")

    def changed(self, kind: str) -> str | None:
        """Return the name of a tensor of this kind that differs from that of the eager loop at the end, if one does."""
        names = [(each, name) for each, tensors in self.held.items() for name in tensors]
        wrong = (
            name
            for place, (each, name) in enumerate(names)
            if each == kind and not agree(self.machine.given(place), self.held[kind][name])
        )
        return next(wrong, None)


def _eager(
    model: torch.nn.Module, optimizer: torch.optim.Optimizer, batches: Sequence[torch.Tensor], seed: int
) -> tuple[list[torch.Tensor], int]:
    """Train by the eager loop; return the losses, and how many launches a step has."""
    losses = []
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for batch in batches:
            with LaunchRecorder() as recorder:
                optimizer.zero_grad(set_to_none=False)
                loss = model(batch).square().mean()
                loss.backward()
                optimizer.step()
            losses.append(loss.detach())
    return losses, len(recorder.launches)


def _told(found: torch.Tensor, expected: float, step: int) -> str:
    """Return a sentence about a loss that is wrong."""
    if found.shape:
        return f"The loss of step {step} has shape {tuple(found.shape)}; the mean is one number."
    if not found.isfinite():
        return f"The loss of step {step} is no number: a capture computes nothing, so replay before you return."
    return f"The loss of step {step} is {float(found):.7g}; the eager loop has {expected:.7g}."


def _losses(answer: AnalysisAnswer, draw: Draw) -> None:
    Trained(answer, draw).require_losses(
        "A warm-up trains: after it, copy the weights from before back into the parameters. In each step, copy_ the "
        "batch into the static one."
    )


def _weights(answer: AnalysisAnswer, draw: Draw) -> None:
    if name := Trained(answer, draw).changed("weights"):
        raise CheckFailedError(
            f"After {STEPS} steps `{name}` differs from the eager loop's. Each call is one step of the same "
            "model, whose parameters keep their memory; a warm-up leaves no trace in them."
        )


def _batches(answer: AnalysisAnswer, draw: Draw) -> None:
    if number := Trained(answer, draw).changed("batches"):
        raise CheckFailedError(
            f"After {STEPS} steps, batch {number} holds other numbers. The static batch is written in each step: "
            "clone() the example for it."
        )


def _no_trace(answer: AnalysisAnswer, draw: Draw) -> None:
    Trained(answer, draw, dropout=0.3).require_losses(
        "The model has dropout: the warm-up draws numbers, so set the random state from before it again."
    )
    Trained(answer, draw, running=True).require_losses(
        "The model has a buffer with a running mean: put back all of model.state_dict(), not the parameters alone."
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
        Check("losses of twenty steps", "losses", 1.5, _losses),
        Check("a warm-up leaves no trace", "warm-up", 2, _no_trace),
        Check("weights after twenty steps", "weights", 0.5, _weights),
        Check("batches stay as they are", "inputs", 0.5, _batches),
    ),
)
