"""A contest of compiled kernels against a copy that moves as many bytes; its ratio is a share of the copy's bandwidth.

Both sides take turns in pairs of rounds, as in any contest, so the copy's bandwidth is that of this GPU at this time.
The kernels get new inputs in each round, and all their outputs are verified. The copy has tensors of its own.
"""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from autograder.host.bandwidth import MOST_SHARE, SHARES, Bandwidth
from autograder.host.clock.gpu import CUDA, Gpu
from autograder.host.clock.memory import DeviceMemory, Memory, Problem
from autograder.host.clock.side import Side, Window
from autograder.host.clock.trial import Job, Plan, Trial, run_trial
from autograder.host.draw import Draw
from autograder.host.kinds.callable import as_tuple
from autograder.host.records import Badge
from autograder.host.sandbox import Sandbox
from autograder.host.session import Session
from autograder.host.speed import Thresholds
from autograder.host.traced import Program, TensorSpec, traced
from autograder.protocol.requests.kernel_runs import LoadTimedKernels
from autograder.protocol.requests.loads import LoadGraph

SHARE_OF_DEVICE = 10  # free memory over memory of one round, which lets a round of a GPU's copies take about 3 ms
WINDOW_US = 6_000.0  # of a round, which is not replayed; less where the GPU's memory holds no more


class Shares(Thresholds):
    """The shares of the lowest and the highest badge; a share has no ideal ratio above 1 to begin from."""

    passing, full = SHARES[Badge.BRONZE], SHARES[Badge.GOLD]
    too_good = MOST_SHARE

    def __init__(self) -> None:
        super().__init__(1.0)

    def __post_init__(self) -> None:
        """Accept that nothing is faster than the copy."""


@dataclass
class CopySide(Side):
    """A worker that copies; its rounds copy tensors that `draw` makes, whatever the kernels get."""

    draw: Callable[[], Problem] = field(kw_only=True)

    def window(self, problems: Sequence[Problem], **how: Any) -> Window:
        """Run one round with as many copies as there are problems."""
        return super().window([self.draw() for _ in problems], **how)


@dataclass(frozen=True)
class KernelContest:
    """Compiled kernels and a copy, ready to be timed as often as needed."""

    of: Bandwidth
    load: LoadTimedKernels
    sandbox: Sandbox
    wall_s: float
    draw: Draw
    gpu: Gpu = CUDA

    def trial(self, plan: Plan) -> Trial:
        """Run one trial in new processes."""
        with contextlib.closing(self._kernels()) as kernels, contextlib.closing(self._copy()) as copy:
            return run_trial(kernels, copy, self._job(), plan)

    def control(self, pairs: int) -> Trial:
        """Time the copy against itself, in two new processes."""
        draw = self._drawing(self._copied)
        job = Job(draw, lambda problem: (_copy_of(*problem),), self._most_bytes())
        with contextlib.closing(self._plain_copy()) as first, contextlib.closing(self._plain_copy()) as second:
            return run_trial(first, second, job, Plan(max_pairs=pairs, window_us=WINDOW_US))

    def _job(self) -> Job:
        def reference(problem: Problem) -> Problem:
            return tuple(as_tuple(self.of.reference(*problem, *self.of.numbers)))

        return Job(self._drawing(self.of.inputs), reference, self._most_bytes())

    def _drawing(self, specs: Sequence[TensorSpec]) -> Callable[[], Problem]:
        device = self.gpu.tensors
        generator = torch.Generator(device).manual_seed(self.draw.integer(0, 2**63 - 1))

        def drawn() -> Problem:
            return tuple(torch.randn(s.shape, dtype=s.dtype, device=device, generator=generator) for s in specs)

        return drawn

    def _most_bytes(self) -> int:
        return self.gpu.free_bytes() // SHARE_OF_DEVICE

    @property
    def _copied(self) -> tuple[TensorSpec, ...]:
        """Return what is copied: half of the bytes is read, the other half written."""
        return (TensorSpec((-(-self.of.bytes_moved // 8),)),)

    def _kernels(self) -> Side:
        session = Session(self.sandbox, self.load, wall_s=self.wall_s)
        memory = self._memory(self.of.inputs, self.of.outputs)
        return Side(session, _forms(self.of.outputs), memory=memory, most_replays=1)

    def _copy(self) -> Side:
        return self._copying(CopySide, draw=self._drawing(self._copied))

    def _plain_copy(self) -> Side:
        return self._copying(Side)

    def _copying(self, make: Callable[..., Side], **how: Any) -> Side:
        copy = traced(Program("a copy", lambda: _copy_of, self._copied, 0), self.draw)
        session = Session(self.sandbox, LoadGraph(copy.graph, (), training=False), wall_s=self.wall_s)
        memory = self._memory(self._copied, self._copied)
        return make(session, _forms(self._copied), is_baseline=True, memory=memory, most_replays=1, **how)

    def _memory(
        self, inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]
    ) -> Callable[[Sequence[torch.Tensor]], Memory]:
        return lambda forms: DeviceMemory(forms, _forms(inputs) * (len(forms) // len(outputs)), self.gpu)


def _copy_of(x: torch.Tensor) -> torch.Tensor:
    """Return a copy with the other sign: a kernel makes it, where a plain copy is made by an engine of its own."""
    return torch.neg(x)


def _forms(specs: Sequence[TensorSpec]) -> list[torch.Tensor]:
    return [torch.empty(s.shape, dtype=s.dtype, device="meta") for s in specs]
