"""What tests put under the clock.

A function with a bias and SiLU is asked to be 1.3 times as fast as PyTorch's. Simulated workers give right outputs and
take exactly the time that they are told, on no clock.
"""

import dataclasses
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from autograder.host.clock.contest import Contest, contest
from autograder.host.clock.memory import Problem
from autograder.host.clock.side import Window
from autograder.host.clock.timed_graph import timed_graph
from autograder.host.clock.trial import Job
from autograder.host.draw import Draw
from autograder.host.kinds.graph import GraphAnswer
from autograder.host.sandbox import Sandbox
from autograder.host.session import Session
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec, traced
from autograder.protocol.requests.loads import LoadAnswer, Part

SETUP = "import torch\nfrom torch.nn import functional as F\n"
HONEST = "def gate(x, bias):\n    return F.silu(x + bias)\n"
EMPTY_US = 100.0


def _gate(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.silu(x + bias)


PROGRAM = Program("`F.silu(x + bias)`", lambda: _gate, (TensorSpec((512, 768)), TensorSpec((768,))), 0)
SPEED = Speed(PROGRAM, ideal_ratio=2.0)


def contest_of(answer: str, sandbox: Sandbox, *, wall_s: float = 60.0, into: bool = False) -> Contest:
    """The answer against PyTorch's own operators, as the judge puts it under the clock."""
    load = LoadAnswer("callable", "gate", (Part("setup", SETUP), Part("answer gate", answer)))
    speed = dataclasses.replace(SPEED, into=into)
    return contest(speed, Draw(7, "gate"), sandbox, wall_s, student=lambda: Session(sandbox, load, wall_s=wall_s))


def contest_of_pass(answer: str, sandbox: Sandbox) -> Contest:
    """The graph that a pass makes of the same program, as the judge checks it and puts it under the clock."""
    draw = Draw(7, "fuse")
    load = LoadAnswer("graph", "fuse", (Part("setup", SETUP), Part("answer fuse", answer)))
    made = GraphAnswer(Session(sandbox, load), Session(sandbox, None))
    program = traced(PROGRAM, draw)
    try:
        artifact = timed_graph(made, SPEED, program, draw)
    finally:
        made.student.close()
        made.clean.close()
    return Contest(SPEED, program, sandbox, 60.0, draw, artifact=artifact)


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
    replays: int = 0
    beginning_us: float = 0.0  # of a round that computes, whatever it computes
    most_replays: int = 8

    @property
    def session(self) -> "SimulatedSide":
        return self

    def open(self, count: int) -> None:
        self.sizes.append(count)

    def can_replay(self) -> bool:
        return False

    def window(
        self, problems: Sequence[Problem], *, skip: bool = False, bare: bool = False, once: bool = False
    ) -> Window:
        assert len(problems) == self.sizes[-1]
        work_us = 0.0 if skip else self.beginning_us + self.problem_us * len(problems) * self.noise() * self.alone()
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
