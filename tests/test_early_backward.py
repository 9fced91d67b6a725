"""A fork runs a backward although fake tensors were used before it, with any build of torch."""

import os

import torch
from torch._subclasses import FakeTensorMode


def backward() -> None:
    torch.ones(3, requires_grad=True).sum().backward()


def test_a_fork_runs_a_backward_after_fake_tensors_and_a_backward() -> None:
    with FakeTensorMode():
        torch.ones(2)
    backward()
    if (child := os.fork()) == 0:
        try:
            backward()
        except RuntimeError:
            os._exit(1)
        os._exit(0)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
