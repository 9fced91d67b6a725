"""Workers that do not exist: they give right outputs and take exactly the time that they are told, on no clock."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from autograder.host.clock.memory import Problem
from autograder.host.clock.side import Window
from autograder.host.clock.trial import Job

EMPTY_US = 100.0


@dataclass
class SimulatedSide:
    """A side whose round takes `problem_us` a problem, times what `noise` draws, beside what any round costs."""

    problem_us: float
    noise: Callable[[], float] = lambda: 1.0
    forms: Sequence[torch.Tensor] = (torch.zeros(2),)
    into: bool = False
    is_strict: bool = True
    is_clean: bool = True
    spoil: Callable[[Problem], Problem] = lambda outputs: outputs
    wrote_late: bool = False
    wrote_inputs: bool = False
    alone: Callable[[], float] = lambda: 1.0  # how much slower this side is now than by itself
    closed: bool = False
    sizes: list[int] = field(default_factory=list)
    worker_pid: int = -1

    @property
    def session(self) -> "SimulatedSide":
        return self

    def open(self, count: int) -> None:
        self.sizes.append(count)

    def window(self, problems: Sequence[Problem], *, skip: bool = False, bare: bool = False) -> Window:
        assert len(problems) == self.sizes[-1]
        work_us = 0.0 if skip else self.problem_us * len(problems) * self.noise() * self.alone()
        outputs = tuple(self.spoil(reference(problem)) for problem in problems)
        return Window(EMPTY_US + work_us, outputs, self.wrote_late, self.wrote_inputs)

    def empty_us(self, problems: Sequence[Problem], *, bare: bool = False) -> float:
        return self.window(problems, skip=True, bare=bare).time_us

    def close(self) -> None:
        self.closed = True


def reference(problem: Problem) -> Problem:
    return (problem[0] * 2,)


def job() -> Job:
    generator = torch.Generator().manual_seed(0)
    return Job(lambda: (torch.randn(2, generator=generator),), reference)


def scatter(seed: int, *, spread: float, bursts: float = 0.0) -> Callable[[], float]:
    """Draw factors that scatter, and in a share of rounds a neighbour that makes them take several times as long."""
    lot = random.Random(seed)
    return lambda: lot.lognormvariate(0.0, spread) * (lot.uniform(2, 8) if lot.random() < bursts else 1.0)
