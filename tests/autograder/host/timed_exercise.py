"""A function under the clock, for tests: a bias and SiLU, asked to be 1.3 times as fast as PyTorch's."""

import dataclasses

import torch
from torch.nn import functional as F

from autograder.host.clock.contest import Contest, contest
from autograder.host.draw import Draw
from autograder.host.sandbox import Sandbox
from autograder.host.session import Session
from autograder.host.speed import Speed
from autograder.host.traced import Program, TensorSpec
from autograder.protocol.requests.loads import LoadAnswer, Part

SETUP = "import torch\nfrom torch.nn import functional as F\n"
HONEST = "def gate(x, bias):\n    return F.silu(x + bias)\n"


def _gate(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.silu(x + bias)


PROGRAM = Program("`F.silu(x + bias)`", lambda: _gate, (TensorSpec((512, 768)), TensorSpec((768,))), 0)
SPEED = Speed(PROGRAM, ideal_ratio=2.0)


def contest_of(answer: str, sandbox: Sandbox, *, wall_s: float = 60.0, into: bool = False) -> Contest:
    """The answer against PyTorch's own operators, as the judge puts it under the clock."""
    load = LoadAnswer("callable", "gate", (Part("setup", SETUP), Part("answer gate", answer)))
    speed = dataclasses.replace(SPEED, into=into)
    return contest(speed, Draw(7, "gate"), sandbox, wall_s, student=lambda: Session(sandbox, load, wall_s=wall_s))
