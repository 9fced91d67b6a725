"""What a training run found out."""

from dataclasses import dataclass

from torch import nn

from course_lib.training.config import TrainingConfig


@dataclass(frozen=True)
class Evaluation:
    """The loss on held-out text after some steps."""

    steps: int
    held_out_nats: float  # per byte
    baseline_nats: float  # of the unigram baseline on the same bytes
    seconds: float  # of training until then, evaluation included

    @property
    def beats_baseline(self) -> bool:
        """Tell whether the model guesses better than by how often each byte occurs."""
        return self.held_out_nats < self.baseline_nats


@dataclass(frozen=True)
class TrainingRun:
    """A finished run: the trained model, the loss of every step, and the evaluations."""

    config: TrainingConfig
    model: nn.Module
    losses_nats: tuple[float, ...]  # per byte, one a step; those before a resume included
    evaluations: tuple[Evaluation, ...]
    resumed_from_step: int  # 0 if the run was not interrupted

    def __str__(self) -> str:
        lines = [f"{'steps':>6}  {'held-out nats/byte':>18}  {'baseline':>8}  {'seconds':>7}"]
        lines += [
            f"{each.steps:6}  {each.held_out_nats:18.3f}  {each.baseline_nats:8.3f}  {each.seconds:7.1f}"
            for each in self.evaluations
        ]
        return "\n".join(lines)
