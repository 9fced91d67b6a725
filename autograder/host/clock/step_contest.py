"""A contest of training steps: forward in training mode, loss and backward of the rebuilt graph and of the given one.

Its rounds, pairs and verdict are those of any contest of graphs. The optimiser is left out: it is the same for both.
"""

import contextlib
import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import torch

from autograder.host.artifacts import Artifact
from autograder.host.clock.contest import Contest
from autograder.host.clock.memory import Problem
from autograder.host.clock.side import Side
from autograder.host.clock.trial import Job
from autograder.host.kinds.callable import as_tuple
from autograder.host.speed import Thresholds
from autograder.host.traced import Traced, any_fp64
from autograder.protocol.requests.loads import Cost, LoadGraph
from course_lib.kernels.replayed_draws import ReplayedDraws

SEED_BITS = 31


@dataclass(frozen=True)
class StepContest(Contest):
    """A training step of the graph `artifact` and one of the program, ready to be timed as often as needed."""

    def first_step(self) -> None:
        """Run one step of the answer in a new process, with everything that has to be built and compiled for it."""
        with contextlib.closing(self._candidate()) as candidate:
            candidate.open(1)
            candidate.window([self.job().draw()])

    @property
    def thresholds(self) -> Thresholds:
        """Return the required ratios; a step has other costs than bytes, so no ratio is beyond belief."""
        return Thresholds(self.speed.ideal_ratio, math.inf)

    def _job(self, draw: Callable[[], Problem], program: Traced) -> Job:
        def reference(problem: Problem, *, draws: int) -> Problem:
            leaves = program.leaves(self._by, in_fp64=any_fp64(problem))
            with ReplayedDraws(draws):
                output = as_tuple(program.reference(*problem, parameters=leaves))[0]
            loss = output.square().mean()
            return loss.detach(), *torch.autograd.grad(loss, list(leaves.values()))

        return Job(draw, reference, draws=lambda: secrets.randbits(SEED_BITS))

    def _load(self, artifact: Artifact) -> LoadGraph:
        return LoadGraph(artifact.graph, tuple(artifact.tensors), None, self._by)

    def _cost(self, side: Side) -> Cost | None:
        return None  # the checks have counted steps

    @property
    def _by(self) -> tuple[str, ...]:
        return tuple(path for path, _ in self.program.module.named_parameters())

    @property
    def _forms(self) -> list[torch.Tensor]:  # the base caches it
        """Shapes and dtypes of the loss and the gradients."""
        parameters = list(self.program.module.parameters())
        loss = torch.empty((), dtype=parameters[0].dtype, device="meta")
        return [loss, *(torch.empty(p.shape, dtype=p.dtype, device="meta") for p in parameters)]
